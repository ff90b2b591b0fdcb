pub(crate) mod explain;
pub(crate) mod filters;
pub(crate) mod labels;
pub(crate) mod list;
pub(crate) mod list_labels;
pub(crate) mod obstacles;
pub(crate) mod record;
pub(crate) mod selection;
