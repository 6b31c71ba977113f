//! Struct fields that are texts. Models have no layout for owned texts, so an input's text is passed as a view (address
//! and length) in a slot of the frame, the block of memory that compiled code works on. The texts of outputs are
//! copied, into existing memory of the field if possible.

use crate::binding::fields::sealed::Sealed;
use crate::binding::fields::single;
use crate::derived::OutputField;
use crate::{InputValue, Output, OutputValue};
use cembra_runtime::{FramePtr, Optional, QType, Scalar, Slot, Text};
use cembra_value::{ScalarValue, Value};
use std::borrow::Cow;
use std::hint::select_unpredictable;

macro_rules! text_input {
    ($($ty:ty, $empty:expr, |$text:ident| $view:expr;)*) => { $(
        impl<S> Sealed<S> for $ty {}
        impl<S> Sealed<S> for Option<$ty> {}

        impl InputValue for $ty {
            fn qtype() -> QType { QType::TEXT }
            // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
            unsafe fn write(&self, frame: FramePtr, offset: u32) {
                let $text = self;
                // SAFETY: FRAME-SLOT, promised by the caller, who also keeps the text alive.
                unsafe { frame.write(Slot::at(offset), Text::new($view)) }
            }
            fn value(&self) -> Value {
                let $text = self;
                let view: &str = $view;
                Value::from(view)
            }
        }

        impl InputValue for Option<$ty> {
            fn qtype() -> QType { QType::Optional(Scalar::Text) }
            // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
            unsafe fn write(&self, frame: FramePtr, offset: u32) {
                const EMPTY: &$ty = &$empty;
                // Missing texts are unpredictable, so there must be no branch on the presence.
                let $text = select_unpredictable(self.is_some(), self.as_ref().unwrap_or(EMPTY), EMPTY);
                let view = Optional::present_if(self.is_some(), Text::new($view));
                // SAFETY: FRAME-SLOT, promised by the caller, who also keeps the text alive.
                unsafe { frame.write(Slot::at(offset), view) }
            }
            fn value(&self) -> Value {
                let text = self.as_ref().map(|$text| {
                    let view: &str = $view;
                    ScalarValue::Text(view.into())
                });
                Value::optional(Scalar::Text, text)
            }
        }
    )* };
}

text_input! {
    &str, "", |text| text;
    String, String::new(), |text| text.as_str();
    Cow<'_, str>, Cow::Borrowed(""), |text| &**text;
}

/// Returns the text in a slot.
///
/// # Safety
/// FRAME-SLOT for a text at `offset`; STRING-VIEW: the text must live for `'t`.
unsafe fn text<'t>(frame: FramePtr, offset: u32) -> &'t str {
    // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
    unsafe { frame.read(Slot::<Text<'t>>::at(offset)) }.as_str()
}

/// Returns the text in a slot of an optional text; `None` if it is missing.
///
/// # Safety
/// FRAME-SLOT for an optional text at `offset`; STRING-VIEW: the text must live for `'t`.
unsafe fn optional_text<'t>(frame: FramePtr, offset: u32) -> Option<&'t str> {
    // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
    unsafe { frame.read(Slot::<Optional<Text<'t>>>::at(offset)) }.get().map(Text::as_str)
}

/// Implements the output traits for types that own a text.
macro_rules! text_output {
    ($($ty:ty, |$text:ident| $made:expr, |$old:ident, $new:ident| $update:expr;)*) => { $(
        impl OutputValue for $ty {
            fn qtype() -> QType { QType::TEXT }
            // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
            unsafe fn read(frame: FramePtr, offset: u32) -> Option<Self> {
                // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
                let $text = unsafe { text(frame, offset) };
                Some($made)
            }
            // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
            unsafe fn read_into(&mut self, frame: FramePtr, offset: u32) -> bool {
                // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
                let ($old, $new) = (self, unsafe { text(frame, offset) });
                $update;
                true
            }
            fn of_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Scalar(ScalarValue::Text($text)) => Some($made),
                    _ => None,
                }
            }
        }

        impl OutputValue for Option<$ty> {
            fn qtype() -> QType { QType::Optional(Scalar::Text) }
            // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
            unsafe fn read(frame: FramePtr, offset: u32) -> Option<Self> {
                // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
                Some(unsafe { optional_text(frame, offset) }.map(|$text| $made))
            }
            // SAFETY: FRAME-SLOT and STRING-VIEW, as the trait says.
            unsafe fn read_into(&mut self, frame: FramePtr, offset: u32) -> bool {
                // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
                match (self, unsafe { optional_text(frame, offset) }) {
                    (Some($old), Some($new)) => $update,
                    (old, new) => *old = new.map(|$text| $made),
                }
                true
            }
            fn of_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Present(ScalarValue::Text($text)) => Some(Some($made)),
                    Value::Missing(Scalar::Text) => Some(None),
                    _ => None,
                }
            }
        }

        single!($ty);
        single!(Option<$ty>);
    )* };
}

text_output! {
    String, |text| text.to_string(), |old, new| new.clone_into(old);
    Cow<'_, str>, |text| Cow::Owned(text.to_string()), |old, new| update_shared(old, new);
}

/// Assigns the text `new` to `old`, and reuses the memory of `old` if it owns its text.
fn update_shared(old: &mut Cow<'_, str>, new: &str) {
    match old {
        Cow::Owned(old) => new.clone_into(old),
        Cow::Borrowed(_) => *old = Cow::Owned(new.to_owned()),
    }
}
