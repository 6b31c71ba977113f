//! Generates operators that make structs, read fields of structs, and choose between structs; the structs may be optional. This module derives the
//! types of results from the definition of the language, because the library's type inference is what is tested.

use super::Pool;
use crate::config::pick;
use crate::values::FIELDS;
use cembra_expr::NodeId;
use cembra_ops::id;
use cembra_runtime::{Fields, Names, QType, Scalar};
use cembra_value::Value;

/// Returns a random struct type: one to three fields, with or without names. Fields are scalars, and sometimes structs if `depth` is not 0.
pub(super) fn struct_type(random: &mut fastrand::Rng, depth: u32) -> QType {
    let count = random.usize(1..4);
    let fields: Vec<QType> = (0..count)
        .map(|_| match random.u32(..10) {
            0 if depth > 0 => struct_type(random, depth - 1),
            1 if depth > 0 => struct_type(random, depth - 1).optional_struct(),
            _ => QType::of(*pick(random, &Scalar::ALL), random.bool()),
        })
        .collect();
    let names = random.bool().then(|| Names::new(FIELDS.iter().take(count).copied()).ok()).flatten();
    let named = names.and_then(|names| Fields::named(names, fields.clone()));
    QType::Tuple(named.unwrap_or_else(|| fields.into()))
}

/// Returns the fields of `of`, which must be a struct type or an optional struct type.
pub(super) fn fields(of: &QType) -> &Fields<QType> {
    match of.as_optional_struct().unwrap_or(of) {
        QType::Tuple(fields) => fields,
        other => unreachable!("{other} is no struct"),
    }
}

impl Pool<'_> {
    /// Adds a random operator on structs to the program.
    pub(super) fn grow_struct(&mut self) {
        let known: Vec<QType> = self
            .types
            .iter()
            .map(|qtype| qtype.as_optional_struct().unwrap_or(qtype))
            .filter(|qtype| qtype.is_data() && qtype.as_tuple().is_some_and(|fields| !fields.is_empty()))
            .cloned()
            .collect();
        let of = match self.random.u32(..3) {
            0 if !known.is_empty() => pick(self.random, &known).clone(),
            _ => struct_type(self.random, 2),
        };
        let optional = of.optional_struct();
        match self.random.u32(..12) {
            0..=3 => {
                let x = self.of_type(&optional);
                self.field(x, &optional);
            }
            4 => {
                let x = self.either(&of);
                let is_optional = self.types[x.index()] == optional;
                self.operator(id::HAS, &[x], &QType::of(Scalar::Unit, is_optional));
            }
            5 => {
                let x = self.of_type(&optional);
                self.operator(id::PRESENCE_NOT, &[x], &QType::MASK);
            }
            6 => {
                let x = self.either(&of);
                self.operator(id::TO_OPTIONAL, &[x], &optional);
            }
            7 if self.chance(self.config.fallible) => {
                let x = self.of_type(&optional);
                self.operator(id::GET_OPTIONAL_VALUE, &[x], &of);
            }
            8 => {
                let (x, mask) = (self.either(&of), self.of_type(&QType::of(Scalar::Unit, true)));
                self.operator(id::PRESENCE_AND, &[x, mask], &optional);
            }
            9 | 10 => {
                let x = self.of_type(&optional);
                let y = self.arm(&of);
                let made = if self.types[y.index()] == of { &of } else { &optional };
                self.operator(id::PRESENCE_OR, &[x, y], made);
            }
            _ => {
                let condition = QType::of(*pick(self.random, &[Scalar::Unit, Scalar::Boolean]), true);
                let condition = self.of_type(&condition);
                let (on, off) = (self.either(&of), self.arm(&of));
                let is_plain = [on, off].iter().all(|arm| self.types[arm.index()] == of);
                self.operator(id::SHORT_WHERE, &[condition, on, off], if is_plain { &of } else { &optional });
            }
        }
    }

    /// Returns a struct of a type, or an optional one.
    fn either(&mut self, of: &QType) -> NodeId {
        if self.random.bool() { self.of_type(of) } else { self.of_type(&of.optional_struct()) }
    }

    /// Returns a struct of a type, an optional one, or an untyped `missing`.
    fn arm(&mut self, of: &QType) -> NodeId {
        if self.random.u32(..5) == 0 { self.exactly(Value::Nothing) } else { self.either(of) }
    }

    /// Adds a field access to a struct or an optional struct, by name or by index.
    fn field(&mut self, x: NodeId, of: &QType) -> NodeId {
        let fields = fields(of);
        let at = self.random.usize(..fields.len());
        let made = fields[at].optional_struct();
        self.field_at(x, fields, at, &made)
    }

    /// Adds an operator that reads the field `at` of the struct `x`, by name or by index. The result has the type `made`.
    pub(super) fn field_at(&mut self, x: NodeId, fields: &Fields<QType>, at: usize, made: &QType) -> NodeId {
        match fields.names().and_then(|names| names.get(at)) {
            Some(name) if self.random.bool() => {
                let name = self.exactly(Value::text(&**name));
                self.operator(id::GET_FIELD, &[x, name], made)
            }
            _ => {
                let at = self.integer(at as i64);
                self.operator(id::GET_NTH, &[x, at], made)
            }
        }
    }

    /// Returns a node that makes a struct of type `qtype` from literals with operators.
    pub(super) fn written_struct(&mut self, qtype: &QType) -> NodeId {
        if let Some(of) = qtype.as_optional_struct() {
            if self.chance(self.config.missing) {
                let missing = Value::optional_struct(of, None).unwrap_or(Value::Nothing);
                return self.exactly(missing);
            }
            let of = self.written_struct(of);
            return self.operator(id::TO_OPTIONAL, &[of], qtype);
        }
        let QType::Tuple(fields) = qtype else { return self.literal(qtype) };
        let mut operands: Vec<NodeId> = Vec::new();
        let names = fields.names().map(Names::joined);
        if let Some(names) = &names {
            operands.push(self.exactly(Value::text(names.as_str())));
        }
        for field in fields.iter() {
            let written = self.written_struct(field);
            operands.push(written);
        }
        self.operator(if names.is_some() { id::MAKE_NAMED } else { id::MAKE_TUPLE }, &operands, qtype)
    }
}
