//! What errors show where `main` returns them.

/// Makes errors show in `Debug` what they show in `Display`, for that is what a `main` that returns
/// one ends with.
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
