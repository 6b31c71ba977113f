//! The ids of the standard operators, as constants.

use crate::list::standard_operators;
use crate::operator_id::OpId;

macro_rules! ids {
    ($($id:ident = $def:path;)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "the variants are only counted")]
        enum Position { $($id),* }

        $(
            #[doc = concat!("`", stringify!($def), "`.")]
            pub const $id: OpId = OpId::at(Position::$id as u16);
        )*
    };
}

standard_operators!(ids);
