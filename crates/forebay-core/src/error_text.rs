//! The text of errors that `main` returns.

/// Implements `Debug` of errors by their `Display`, because Rust prints the `Debug` of an error from
/// `main`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_display {
    ($($error:ty),+ $(,)?) => {$(
        impl ::core::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, f)
            }
        }
    )+};
}

pub(crate) use debug_as_display;
