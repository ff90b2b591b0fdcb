pub(crate) mod dependencies;
pub(crate) mod family;
pub(crate) mod progress;
