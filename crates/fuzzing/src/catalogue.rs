//! The registry's operators as building blocks of random programs. For an operator on scalars, the catalogue lists all operand types that the
//! operator accepts. For an operator on arrays, the generator tries random operands. Only conditionals and exports are treated by name. Exports are
//! left out, because a program with two exports of one name is rejected.

use crate::values;
use cembra_ops::{Argument, OpDef, OpId, OverArrays, Registry, Typing, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::Value;
use std::sync::OnceLock;

/// An operand in a list of operands that an operator accepts: any value of a type, or one literal.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum OperandChoice {
    /// The operand may be any value of this type.
    Of(QType),
    /// The operand is this literal: the untyped missing value, a type, a flag, an unspecified argument.
    Literal(Value),
}

/// A list of operands that an operator accepts, as indices into the catalogue's operand choices.
pub(crate) type Form = Box<[u8]>;

/// An operator of the catalogue, with the lists of operands (forms) that it accepts.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) op: OpId,
    pub(crate) def: &'static OpDef,
    /// The operand lists that the operator accepts, in groups. There is one group per overload and lifting (to optionals or arrays), or one per
    /// result type.
    pub(crate) groups: Vec<Vec<Form>>,
}

impl Entry {
    /// Returns true if the operator's operands cannot be listed by scalar types, so that random operands have to be tried.
    pub(crate) fn is_open(&self) -> bool {
        self.groups.is_empty() || self.def.variadic
    }
}

/// The operators that programs are generated from, with the operands that each accepts.
#[derive(Debug)]
pub(crate) struct Catalogue {
    choices: Vec<OperandChoice>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) conditionals: Vec<usize>,
    pub(crate) open: Vec<usize>,
    /// The overloads of all operators, on scalars and lifted to optionals or arrays. Each is given by the index of the operator's entry, and the
    /// index of a group of operand lists in that entry.
    pub(crate) overload_groups: Vec<(usize, usize)>,
    /// The operators that are only used on arrays, or that do more with arrays than apply to each element.
    pub(crate) of_arrays: Vec<Entry>,
}

/// Returns true for operators that can be used in generated programs. Exports are extra outputs, and an operator that the host does not have cannot
/// run.
fn stands_by_itself(op: OpId) -> bool {
    !matches!(op, id::EXPORT | id::EXPORT_VALUE | id::EXTERN)
}

impl Catalogue {
    /// Returns the catalogue of the standard registry, which is built once.
    pub(crate) fn standard() -> &'static Catalogue {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| Catalogue::of(Registry::standard()))
    }

    fn of(registry: &Registry) -> Catalogue {
        let scalars = || Scalar::ALL.into_iter().flat_map(|s| [QType::Scalar(s), QType::Optional(s)]);
        let mut choices: Vec<OperandChoice> = scalars().map(OperandChoice::Of).collect();
        choices.push(OperandChoice::Literal(Value::Nothing));
        // Literals that only typing uses. The operands of operators with many parameters are values instead.
        let values = choices.len();
        choices.extend(scalars().map(|qtype| OperandChoice::Literal(Value::Type(qtype))));
        choices.extend([false, true].map(|flag| OperandChoice::Literal(Value::from(flag))));
        choices.push(OperandChoice::Literal(Value::Unspecified));
        choices.extend(values::dictionaries().chain(values::ranges()).map(OperandChoice::Literal));
        let entries: Vec<Entry> = registry
            .iter()
            // Functions and operators on them are grown separately, in scopes of their own.
            .filter(|(_, def)| !matches!(def.typing, Typing::Instantiated | Typing::OfTensors))
            // Programs on scalars have no operators that make arrays, or that accept only arrays.
            .filter(|(_, def)| !def.is_of_arrays() && !["array.", "edge."].iter().any(|of| def.name.starts_with(of)))
            .filter(|(op, _)| {
                stands_by_itself(*op)
                    && !matches!(*op, id::DICT_MAKE | id::DICT_RANGES | id::DICT_RANGED | id::DICT_RANGED_ROW)
            })
            .map(|(op, def)| {
                let kinds = if def.params.len() > 3 { values } else { choices.len() };
                Entry { op, def, groups: groups(def, &choices, kinds) }
            })
            // Operators in suitable families that no scalars fit accept arrays.
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
        let overload_groups = (0..entries.len())
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
        Catalogue { choices, entries, conditionals, open, overload_groups, of_arrays }
    }

    /// Returns the catalogue's entry for the operator `op`, among those for arrays or those for scalars; `None` if it has no entry.
    pub(crate) fn known(&self, op: OpId) -> Option<&Entry> {
        self.of_arrays.iter().chain(&self.entries).find(|entry| entry.op == op)
    }

    /// Returns the operand choice with the index `at`.
    pub(crate) fn choice(&self, at: u8) -> &OperandChoice {
        &self.choices[usize::from(at)]
    }
}

/// Returns the candidates for each operand, among the first `kinds` choices. Operators with many parameters and overloads get only the types of their
/// overloads, because all combinations would be too many. Casts are tried on operators with few parameters.
fn candidates(def: &OpDef, choices: &[OperandChoice], kinds: usize) -> Vec<Vec<u8>> {
    let overloads = def.overloads();
    let of_overload = |position: usize, choice: &OperandChoice| match choice {
        OperandChoice::Of(qtype) => {
            overloads.iter().any(|o| o.args.get(position).map(|arg| arg.scalar) == qtype.scalar())
        }
        OperandChoice::Literal(value) => *value == Value::Nothing,
    };
    // A parameter that takes a dictionary literal gets only dictionaries. They are many, to cover all types of values and keys.
    let is_dict = |choice: &OperandChoice| matches!(choice, OperandChoice::Literal(Value::Dict(_)));
    let fits = |position: usize, choice: &OperandChoice| (def.params[position].name == "dict") == is_dict(choice);
    let wide = def.params.len() > 3 && !overloads.is_empty();
    (0..def.params.len())
        .map(|position| {
            let kinds = (0..kinds).filter(|at| fits(position, &choices[*at]));
            kinds.filter(|at| !wide || of_overload(position, &choices[*at])).map(|at| at as u8).collect()
        })
        .collect()
}

/// Returns every list of operands that an operator accepts, in groups: one group per overload, or per type of the result.
fn groups(def: &OpDef, choices: &[OperandChoice], kinds: usize) -> Vec<Vec<Form>> {
    if def.variadic {
        return Vec::new();
    }
    let candidates = candidates(def, choices, kinds);
    let types: Vec<QType> = choices
        .iter()
        .map(|choice| match choice {
            OperandChoice::Of(qtype) => qtype.clone(),
            OperandChoice::Literal(value) => value.qtype(),
        })
        .collect();
    let argument = |at: u8| Argument {
        qtype: &types[usize::from(at)],
        literal: match &choices[usize::from(at)] {
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
        // Advances to the next combination, like an odometer.
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
                // An open operator needs no settled overload if its type rules read a literal text.
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
                    .map(|at| match catalogue.choice(*at) {
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
