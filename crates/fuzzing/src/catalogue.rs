//! What programs can be made of: the registry's operators. Those on scalars come with every list of operand types they take,
//! found by asking their typing; those that know arrays are tried on what there is. Nothing here is said of any operator by name but
//! which ones are conditionals, and that exports are left out: two of the same name are refused, whatever their types.

use crate::values;
use cembra_ops::{Argument, OpDef, OpId, OverArrays, Registry, Typing, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::Value;
use std::sync::OnceLock;

/// What an operand of a form must be.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum OperandChoice {
    /// Any value of a type.
    Of(QType),
    /// This literal: the untyped missing value, a type, a flag, an argument that is not specified.
    Literal(Value),
}

/// A list of operands an operator takes, by position in the list of what operands can be.
pub(crate) type Form = Box<[u8]>;

/// An operator and the forms found for it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) op: OpId,
    pub(crate) def: &'static OpDef,
    /// Forms by what computes them: one group for each overload and lifting, or for each result type.
    pub(crate) groups: Vec<Vec<Form>>,
}

impl Entry {
    /// True if its operands are not settled by types of scalars and have to be tried.
    pub(crate) fn is_open(&self) -> bool {
        self.groups.is_empty() || self.def.variadic
    }
}

/// All operators.
#[derive(Debug)]
pub(crate) struct Catalogue {
    wanted: Vec<OperandChoice>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) conditionals: Vec<usize>,
    pub(crate) open: Vec<usize>,
    /// One for each overload and lifting: the operator, and which of its groups.
    pub(crate) aims: Vec<(usize, usize)>,
    /// Operators that programs on scalars are not made of, or that do more than they do with each element: what knows arrays.
    pub(crate) of_arrays: Vec<Entry>,
}

/// True for what a program is made of: exports are outputs too, and an operator that the host does not have cannot run.
fn stands_by_itself(op: OpId) -> bool {
    !matches!(op, id::EXPORT | id::EXPORT_VALUE | id::EXTERN)
}

impl Catalogue {
    pub(crate) fn standard() -> &'static Catalogue {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| Catalogue::of(Registry::standard()))
    }

    fn of(registry: &Registry) -> Catalogue {
        let scalars = || Scalar::ALL.into_iter().flat_map(|s| [QType::Scalar(s), QType::Optional(s)]);
        let mut wanted: Vec<OperandChoice> = scalars().map(OperandChoice::Of).collect();
        wanted.push(OperandChoice::Literal(Value::Nothing));
        // Literals that only typing looks at; the many operands of a wide operator are values.
        let values = wanted.len();
        wanted.extend(scalars().map(|qtype| OperandChoice::Literal(Value::Type(qtype))));
        wanted.extend([false, true].map(|flag| OperandChoice::Literal(Value::from(flag))));
        wanted.push(OperandChoice::Literal(Value::Unspecified));
        wanted.extend(values::dictionaries().chain(values::ranges()).map(OperandChoice::Literal));
        let entries: Vec<Entry> = registry
            .iter()
            // Functions and what takes them are grown in scopes of their own.
            .filter(|(_, def)| !matches!(def.typing, Typing::Instantiated | Typing::OfTensors))
            // Programs on scalars have no arrays: neither what makes them, nor what takes only them.
            .filter(|(_, def)| !def.is_of_arrays() && !["array.", "edge."].iter().any(|of| def.name.starts_with(of)))
            .filter(|(op, _)| {
                stands_by_itself(*op)
                    && !matches!(*op, id::DICT_MAKE | id::DICT_RANGES | id::DICT_RANGED | id::DICT_RANGED_ROW)
            })
            .map(|(op, def)| {
                let kinds = if def.params.len() > 3 { values } else { wanted.len() };
                Entry { op, def, groups: groups(def, &wanted, kinds) }
            })
            // What no scalars fit, in families that know neither tuples nor types, takes arrays.
            .filter(|entry| {
                let family = entry.def.name.split_once('.').map_or("", |(family, _)| family);
                let knows_scalars = matches!(family, "math" | "strings" | "random" | "bool");
                let is_elementwise = matches!(entry.def.over_arrays, OverArrays::Elementwise | OverArrays::Expanded);
                is_elementwise || !knows_scalars || !entry.groups.is_empty() || entry.def.variadic
            })
            .collect();
        let lazy = |entry: &Entry| entry.op == id::WHERE || entry.op == id::SHORT_WHERE;
        let conditionals = (0..entries.len()).filter(|at| lazy(&entries[*at])).collect();
        let open = (0..entries.len()).filter(|at| entries[*at].is_open()).collect();
        let aims = (0..entries.len())
            .filter(|at| !entries[*at].def.overloads().is_empty())
            .flat_map(|at| (0..entries[at].groups.len()).map(move |group| (at, group)))
            .collect();
        let knows_arrays = |def: &OpDef| matches!(def.over_arrays, OverArrays::Own | OverArrays::Kernel(_));
        let of_arrays = registry
            .iter()
            .filter(|(_, def)| knows_arrays(def) && !matches!(def.typing, Typing::Instantiated | Typing::OfTensors))
            .filter(|(op, _)| stands_by_itself(*op))
            .map(|(op, def)| Entry { op, def, groups: Vec::new() })
            .collect();
        Catalogue { wanted, entries, conditionals, open, aims, of_arrays }
    }

    /// What is known of an operator, on scalars or on arrays.
    pub(crate) fn known(&self, op: OpId) -> Option<&Entry> {
        self.of_arrays.iter().chain(&self.entries).find(|entry| entry.op == op)
    }

    pub(crate) fn wanted(&self, at: u8) -> &OperandChoice {
        &self.wanted[usize::from(at)]
    }
}

/// What the operand at each position may be, of the first `kinds` there are. A wide operator with overloads gets only
/// what one of them has there: all lists of all types would be too many, and casts are tried on the narrow ones.
fn candidates(def: &OpDef, wanted: &[OperandChoice], kinds: usize) -> Vec<Vec<u8>> {
    let overloads = def.overloads();
    let of_overload = |position: usize, wanted: &OperandChoice| match wanted {
        OperandChoice::Of(qtype) => {
            overloads.iter().any(|o| o.args.get(position).map(|arg| arg.scalar) == qtype.scalar())
        }
        OperandChoice::Literal(value) => *value == Value::Nothing,
    };
    // Where there is a dictionary, there is nothing else: they are many, so that there are values of each type by keys of each.
    let is_dict = |wanted: &OperandChoice| matches!(wanted, OperandChoice::Literal(Value::Dict(_)));
    let fits = |position: usize, wanted: &OperandChoice| (def.params[position].name == "dict") == is_dict(wanted);
    let wide = def.params.len() > 3 && !overloads.is_empty();
    (0..def.params.len())
        .map(|position| {
            let kinds = (0..kinds).filter(|at| fits(position, &wanted[*at]));
            kinds.filter(|at| !wide || of_overload(position, &wanted[*at])).map(|at| at as u8).collect()
        })
        .collect()
}

/// Every form an operator takes, grouped.
fn groups(def: &OpDef, wanted: &[OperandChoice], kinds: usize) -> Vec<Vec<Form>> {
    if def.variadic {
        return Vec::new();
    }
    let candidates = candidates(def, wanted, kinds);
    let types: Vec<QType> = wanted
        .iter()
        .map(|w| match w {
            OperandChoice::Of(qtype) => qtype.clone(),
            OperandChoice::Literal(value) => value.qtype(),
        })
        .collect();
    let argument = |at: u8| Argument {
        qtype: &types[usize::from(at)],
        literal: match &wanted[usize::from(at)] {
            OperandChoice::Literal(value) => Some(value),
            OperandChoice::Of(_) => None,
        },
    };
    let mut keys = Vec::new();
    let mut groups: Vec<Vec<Form>> = Vec::new();
    let mut digits = vec![0_usize; def.params.len()];
    loop {
        let form: Form = digits.iter().zip(&candidates).map(|(digit, these)| these[*digit]).collect();
        let args: Vec<Argument<'_>> = form.iter().map(|at| argument(*at)).collect();
        if let Ok(resolved) = def.resolve(&args)
            && resolved.signature.ret.is_framed()
        {
            let ret = resolved.overload.is_none().then_some(resolved.signature.ret);
            let key = (resolved.overload, resolved.lifted, ret);
            let at = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                keys.push(key);
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[at].push(form);
        }
        // The next list, counting up like an odometer.
        let more = |position: &usize| digits[*position] + 1 < candidates[*position].len();
        let Some(position) = (0..digits.len()).rev().find(more) else { return groups };
        digits[position] += 1;
        digits[position + 1..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_overload_of_every_operator_is_reachable() {
        let catalogue = Catalogue::standard();
        for entry in &catalogue.entries {
            if entry.is_open() {
                // Literals that typing looks at are texts of their form.
                let mut random = fastrand::Rng::with_seed(1);
                let mut params = entry.def.params.iter();
                let has_texts = params.any(|param| values::text_of(&mut random, param.form).is_some());
                let settled = !entry.def.variadic && !has_texts && !entry.def.overloads().is_empty();
                assert!(!settled, "{} has overloads but no form", entry.def.name);
                continue;
            }
            let mut found = vec![false; entry.def.overloads().len()];
            for form in entry.groups.iter().flatten() {
                let literals: Vec<(QType, Option<&Value>)> = form
                    .iter()
                    .map(|at| match catalogue.wanted(*at) {
                        OperandChoice::Of(qtype) => (qtype.clone(), None),
                        OperandChoice::Literal(value) => (value.qtype(), Some(value)),
                    })
                    .collect();
                let args: Vec<_> =
                    literals.iter().map(|(qtype, literal)| Argument { qtype, literal: *literal }).collect();
                if let Some(overload) = entry.def.resolve(&args).unwrap().overload {
                    found[usize::from(overload)] = true;
                }
            }
            let holes: Vec<_> =
                found.iter().zip(entry.def.overloads()).filter(|(f, _)| !**f).map(|(_, o)| o.args).collect();
            assert!(holes.is_empty(), "{}: no types reach {holes:?}", entry.def.name);
        }
    }
}
