//! Calls an operator on values, to evaluate literals during preparation and for tests. It runs the kernels that the
//! interpreter runs, on a frame (memory for values) that is made for one call, so that missing arguments are handled by
//! the same code as at run time.

use crate::array::{ArrayForm, ArrayOperands};
use crate::compound::literal_integer;
use crate::definition::{Meaning, OpDef, OverArrays, Overload, Structure};
use crate::typing::ResolvedCall;
use cembra_runtime::{Arena, Context, Fault, FaultKind, Frame, FrameLayout, FramePtr, KernelChain, QType, STATUS_OK};
use cembra_value::Value;
use smallvec::SmallVec;

/// Calls an operator on values whose types are exactly those of `resolved`.
///
/// Returns `None` if the operator does not compute on values, for example because it is an expansion, or if the types
/// of the values differ from those of `resolved`.
///
/// # Errors
/// The fault that the operator raised.
pub fn call(def: &OpDef, resolved: &ResolvedCall, args: &[Value]) -> Option<Result<Value, Fault>> {
    call_within(def, resolved, args, usize::MAX)
}

/// Calls an operator as [`call`] does, within limits: at most `room` bytes for its result and temporary data, and at most `room` units of work on
/// strings.
///
/// # Errors
/// The fault that the operator raised: `ArenaLimit` if it needs more memory, `WorkLimit` if it needs more work on strings.
pub fn call_within(def: &OpDef, resolved: &ResolvedCall, args: &[Value], room: usize) -> Option<Result<Value, Fault>> {
    if args.len() != resolved.signature.operands.len()
        || args.iter().zip(&resolved.signature.operands).any(|(value, qtype)| !value.is_of(qtype))
    {
        return None;
    }
    if let (OverArrays::Kernel(operator), None) = (def.over_arrays, resolved.overload) {
        // An operand may be the size of the result, but not if the operands are its elements.
        let is_bounded = operator.form != ArrayForm::Produce || def.variadic;
        let operands = ArrayOperands::new(args, &|| false, room as u64);
        return is_bounded.then(|| (operator.evaluate)(&operands, &resolved.signature.ret));
    }
    match def.meaning {
        Meaning::Overloads(overloads) => {
            let overload = overloads.get(usize::from(resolved.overload?))?;
            let ResolvedCall { signature, lifted, .. } = resolved;
            let taken =
                signature.operands.iter().enumerate().all(|(at, qtype)| overload.accepts_argument(at, *lifted, qtype));
            if !taken
                || signature.operands.len() != overload.args.len()
                || !overload.gives_type(*lifted, &signature.ret)
            {
                return None;
            }
            // An overload that is compiled with a model is not called, because there is no model yet.
            let mut context = Context::with_arena_limit(room.min(Arena::LIMIT));
            context.set_string_work((room as u64).min(Context::STRING_WORK));
            context.begin();
            (overload.pure && overload.compile.is_none()).then(|| call_overload(&mut context, overload, resolved, args))
        }
        Meaning::Structure(Structure::MakeTuple) => Some(Ok(Value::Tuple(args.into()))),
        Meaning::Structure(Structure::MakeNamed) => match &resolved.signature.ret {
            QType::Tuple(fields) => Some(Ok(Value::Tuple(fields.with(args.get(1..)?.to_vec())))),
            _ => None,
        },
        Meaning::Structure(Structure::GetNth) => match args {
            [Value::Tuple(fields), index] => {
                let index = usize::try_from(literal_integer(Some(index))?).ok()?;
                fields.get(index).cloned().map(Ok)
            }
            _ => None,
        },
        Meaning::Structure(Structure::Lambda | Structure::Named | Structure::Has)
        | Meaning::Expand(_)
        | Meaning::Choose(_)
        | Meaning::Instantiate(_) => None,
    }
}

/// Calls an overload on values of its argument types, in the evaluation that `context` belongs to.
pub(crate) fn call_overload(
    context: &mut Context,
    overload: &Overload,
    resolved: &ResolvedCall,
    args: &[Value],
) -> Result<Value, Fault> {
    let mut layout = FrameLayout::default();
    let ret = &resolved.signature.ret;
    let slots: SmallVec<[u32; 6]> =
        resolved.signature.operands.iter().chain([ret]).map(|qtype| layout.add(qtype).unwrap_or(0)).collect();
    // Most calls are casts of literals, and allocating memory would take longer than the cast.
    let (mut few, mut many) = ([0_u64; 8], None);
    let frame = if layout.size() as usize <= size_of_val(&few) {
        FramePtr::from_raw(few.as_mut_ptr().cast())
    } else {
        many.insert(Frame::zeroed(layout.size() as usize)).ptr()
    };
    // SAFETY: FRAME-SLOT: the layout was made for these types just above, the values are of these types and the overload takes
    // and makes them (both checked by the caller), and texts outlive the call.
    unsafe {
        for (value, slot) in args.iter().zip(&slots) {
            value.write_to(frame, *slot);
        }
        let mut row = KernelChain::default();
        row.push(overload.kernel(resolved.lifted), overload.data.as_ptr(), 0, slots.iter().copied());
        row.end();
        let status = row.call(0).run(context, frame);
        if context.end(status) == STATUS_OK {
            return Ok(Value::read_from(ret, frame, slots[args.len()]));
        }
    }
    let record = context.record();
    let kind = FaultKind::from_number(record.kind).unwrap_or(FaultKind::Assertion);
    Err(Fault { kind, operands: record.operands })
}
