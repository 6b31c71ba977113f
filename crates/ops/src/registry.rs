//! The registry of operators. It gives each operator an id, finds operators by name or alias, and is the vocabulary
//! with which the text language is parsed.

use crate::cast::cast_operator;
use crate::definition::{Meaning, OpDef, Structure};
use crate::operator_id::OpId;
use crate::resolution::{Key, Resolutions};
use crate::typing::{Argument, ResolvedCall, TypeFault};
use crate::user::refused;
use crate::{Effects, id};
use cembra_expr::{Callable, Vocabulary};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Error, near_names};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::OnceLock;

/// A set of operators with their ids and names.
#[derive(Clone)]
pub struct Registry {
    defs: Vec<&'static OpDef>,
    resolutions: Resolutions,
    /// For each operator, the kind of structure that it builds or takes apart; `None` for an operator that computes.
    structures: Vec<Option<Structure>>,
    /// The effects of each operator's overloads, computed on first use.
    effects: Vec<OnceLock<Box<[Effects]>>>,
    names: FxHashMap<&'static str, OpId>,
    /// The operators that short names mean in calls with one operand, for names that mean another operator with more
    /// operands.
    of_one: FxHashMap<&'static str, OpId>,
}

impl Registry {
    /// Makes a registry of the operators `defs`, whose ids are their positions.
    pub(crate) fn of(defs: &[&'static OpDef]) -> Registry {
        let (mut names, mut of_one) = (FxHashMap::default(), FxHashMap::default());
        for (at, def) in defs.iter().enumerate().filter(|(_, def)| !def.is_of_plans) {
            let id = OpId::at(at as u16);
            names.insert(def.name, id);
            for alias in def.aliases {
                if names.contains_key(alias) {
                    of_one.insert(*alias, id);
                } else {
                    names.insert(alias, id);
                }
            }
        }
        let structure = |(at, def): (usize, &&OpDef)| match def.meaning {
            Meaning::Structure(structure) => Some(structure),
            _ => (at == id::HAS.index()).then_some(Structure::Has),
        };
        Registry {
            defs: defs.to_vec(),
            structures: defs.iter().enumerate().map(structure).collect(),
            resolutions: Resolutions::default(),
            effects: vec![OnceLock::new(); defs.len()],
            names,
            of_one,
        }
    }

    /// Adds an operator to the registry, or replaces the user's operator of this name. The record of the operator lives
    /// as long as the process.
    pub(crate) fn add(&mut self, def: OpDef) -> Result<OpId, Error> {
        if let Some(id) = self.find(def.name) {
            self.defs[id.index()] = Box::leak(Box::new(def));
            self.effects[id.index()] = OnceLock::new();
            // Resolutions of the replaced operator are not valid for this one.
            self.resolutions = Resolutions::default();
            return Ok(id);
        }
        let id = OpId::at(
            u16::try_from(self.defs.len())
                .map_err(|_| refused("the registry is full; the limit is 65,536 operators".to_owned()))?,
        );
        let def: &'static OpDef = Box::leak(Box::new(def));
        self.defs.push(def);
        // Only standard operators are structure.
        self.structures.push(None);
        self.effects.push(OnceLock::new());
        self.names.insert(def.name, id);
        Ok(id)
    }

    /// Leaks the registry, so that it lives as long as the process, because models refer to it.
    #[must_use]
    pub fn leak(self) -> &'static Registry {
        Box::leak(Box::new(self))
    }

    /// The record of the operator with the id `id`.
    #[must_use]
    #[inline]
    pub fn get(&self, id: OpId) -> &'static OpDef {
        self.defs[id.index()]
    }

    /// Returns the operator that a call of `id` uses for operands of the types `types`: an operator that replaces `id`
    /// for these types, for example for durations, or `id` itself.
    #[must_use]
    pub fn meant(&self, id: OpId, types: &[&QType]) -> OpId {
        let op = match self.get(id).meaning {
            Meaning::Choose(choose) => choose(types),
            _ => id,
        };
        self.get(op).replacement(types).unwrap_or(op)
    }

    /// Finds the operand types, the result type and the overload of a call of the operator `id`.
    ///
    /// # Errors
    /// If the operator does not accept the types of `args`.
    pub fn resolve(&self, id: OpId, args: &[Argument<'_>]) -> Result<Cow<'_, ResolvedCall>, TypeFault> {
        let key = Key::of(id, args);
        if let Some(known) = key.and_then(|key| self.resolutions.get(key)) {
            return Ok(Cow::Borrowed(known));
        }
        let def = self.get(id);
        let resolved = def.resolve(args)?;
        if let Some(key) = key.filter(|_| args.iter().all(|arg| arg.literal.is_none()) || def.is_typed_by_types()) {
            self.resolutions.remember(key, &resolved);
        }
        Ok(Cow::Owned(resolved))
    }

    /// Facts about evaluating the overload with the index `overload` of the operator `id`, such as whether it may fail
    /// and its cost.
    #[must_use]
    pub fn effects(&self, id: OpId, overload: u16) -> Effects {
        let def = self.get(id);
        let all = || def.overloads().iter().map(|overload| Effects::of(def, overload)).collect();
        self.effects[id.index()].get_or_init(all)[usize::from(overload)]
    }

    /// The kind of structure that an operator builds or takes apart, such as a tuple; `None` for any other operator.
    #[must_use]
    #[inline]
    pub fn structure(&self, id: OpId) -> Option<Structure> {
        self.structures[id.index()]
    }

    /// The operator with this name or alias; `None` if there is no such operator.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<OpId> {
        self.names.get(name).copied()
    }

    /// The operators that models can refer to by name, with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (OpId, &'static OpDef)> + '_ {
        let all = self.defs.iter().enumerate().map(|(at, def)| (OpId::at(at as u16), *def));
        all.filter(|(_, def)| !def.is_of_plans)
    }

    /// The operator that casts to the type `scalar`. `None` for a type without such an operator, such as `unit` or `text`.
    #[must_use]
    pub fn cast_to(&self, scalar: Scalar) -> Option<OpId> {
        cast_operator(scalar)
    }
}

impl std::fmt::Debug for Registry {
    /// Writes the number of operators only, because their records would fill pages.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registry({} operators)", self.defs.len())
    }
}

/// The longest name that is written in capital letters, in bytes, for which an error suggests the name in small
/// letters.
const LONGEST_SUGGESTED: usize = 64;

/// The part of an operator's name after the first dot, which ends the name of the family.
fn own(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, own)| own)
}

impl Vocabulary for Registry {
    fn resolve(&self, name: &str) -> Option<Callable<'_>> {
        let def = self.get(self.find(name)?);
        let of_one = self.of_one.get(name).map(|op| self.get(*op).name);
        Some(Callable { name: def.name, params: def.params, variadic: def.variadic, of_one, integers: def.integers() })
    }

    fn suggest(&self, name: &str) -> Vec<String> {
        // A name in capital letters, as in formulas of spreadsheets, means the same name in small letters.
        let lower = if name.len() <= LONGEST_SUGGESTED { name.to_ascii_lowercase() } else { String::new() };
        if lower != name && self.find(&lower).is_some() {
            return vec![lower];
        }
        // A dotted name is compared with dotted names, a short one with short ones.
        let known = || self.names.keys().copied().filter(|known| !known.contains("._"));
        // An operator of another family with the same last part is likelier than one with a similar name.
        let mut meant: Vec<&str> = known().filter(|known| *known != name && own(known) == own(name)).collect();
        meant.sort_unstable();
        let alike = known().filter(|known| known.contains('.') == name.contains('.'));
        let near = near_names(name, 1 + own(name).len() / 4, alike);
        let near: Vec<&str> = near.into_iter().filter(|near| !meant.contains(near)).collect();
        meant.into_iter().chain(near).take(3).map(ToOwned::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for (_, def) in Registry::standard().iter() {
            for name in std::iter::once(&def.name).chain(def.aliases) {
                // Their second meaning is tested below.
                let has_two = ["min", "max"].contains(name);
                assert!(seen.insert(*name) || has_two, "{name} is taken twice");
            }
        }
    }

    #[test]
    fn a_short_name_may_mean_another_operator_of_one_operand() {
        let registry = Registry::standard();
        let found = |name: &str| Vocabulary::resolve(registry, name).map(|callable| (callable.name, callable.of_one));
        assert_eq!(found("max"), Some(("math.maximum", Some("math.max"))));
        assert_eq!(found("min"), Some(("math.minimum", Some("math.min"))));
        assert_eq!(found("maximum"), Some(("math.maximum", None)));
        assert_eq!(found("math.max"), Some(("math.max", None)));
        assert_eq!(registry.of_one.len(), 2);
    }

    #[test]
    fn suggestions_are_near_and_public() {
        assert_eq!(Registry::standard().suggest("sqr")[0], "sqrt");
        assert_eq!(Registry::standard().suggest("math.sqr")[0], "math.sqrt");
        assert!(Registry::standard().suggest("frobnicate").is_empty());
        assert_eq!(Registry::standard().suggest("transpose"), ["tensor.transpose"]);
        assert_eq!(Registry::standard().suggest("ROUND"), ["round"]);
    }
}
