pub(crate) mod registrations;
pub(crate) mod sessions;
