pub(crate) mod buckets;
pub(crate) mod concurrency;
pub(crate) mod fair;
pub(crate) mod groups;
pub(crate) mod limits;
pub(crate) mod pauses;
pub(crate) mod rates;
pub(crate) mod rounds;
