//! Names of queues and classes of jobs: shared, and counted by reference.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::job::{Class, Options};
use crate::structures::byte_string::ByteString;

impl Board {
    /// The number of a queue, which is added if it is new.
    pub(crate) fn queue(&mut self, name: &[u8]) -> u32 {
        match self.queues.find(name) {
            Some(number) => number,
            None => self.queues.add(name.into()).0,
        }
    }

    /// The class of a job in this queue, with a reference held to it.
    pub(crate) fn hold_class(&mut self, queue: &[u8], name: &[u8], options: Options) -> u32 {
        let options = Options { cost: None, ..options };
        let same = self.store.classes.key(self.local.last_class).is_some_and(|class| {
            *class.name == *name
                && *class.options() == options
                && self.queues.key(class.queue).is_some_and(|q| **q == *queue)
        });
        if !same {
            let queue = self.queue(queue);
            let own = (options != Options::default()).then(|| Box::new(options));
            let class = Class { queue, name: name.into(), own };
            self.local.last_class = match self.store.classes.find(&class) {
                Some(number) => number,
                None => {
                    self.queues.hold(queue);
                    let named = !class.name.is_empty();
                    let name = named.then(|| self.places.labels.hold_name(&class.name)).flatten();
                    let (number, gone) = self.store.classes.add(class);
                    if let Some(label) = self.store.classes.get_mut(number) {
                        *label = name;
                    }
                    self.forget_class(gone);
                    number
                }
            };
        }
        self.store.classes.hold(self.local.last_class);
        self.local.last_class
    }

    pub(crate) fn release_class(&mut self, class: u32) {
        let gone = self.store.classes.release(class);
        self.forget_class(gone);
    }

    pub(crate) fn forget_class(&mut self, class: Option<Class>) {
        if let Some(class) = class {
            self.queues.release(class.queue);
            if let Some(labels) = self.places.labels.there() {
                labels.release_name(&class.name);
            }
        }
    }

    /// Gives a job another class. Its queue may change only while it is in no place, its name only
    /// while no label indexes it.
    pub(crate) fn reclass(
        &mut self,
        slot: u32,
        queue: Option<&[u8]>,
        name: Option<&[u8]>,
        options: Options,
    ) -> Result<(), ApplyError> {
        let job = self.job(slot)?;
        let class = self.class_of(job).ok_or(ApplyError)?;
        let options = options.or(*class.options());
        let name = name.map_or_else(|| class.name.clone(), ByteString::from);
        let queue = queue.map_or_else(|| ByteString::from(self.queue_name(job)), ByteString::from);
        let (old, from_queue, bytes) = (job.class, class.queue, self.weight(job));
        let from = job.group().map(|at| (from_queue, at));
        let group = self.group_name(job).map(ByteString::from);
        let fresh = self.hold_class(&queue, &name, options);
        self.job_mut(slot)?.class = fresh;
        self.queue_loses(old, bytes);
        self.queue_gains(fresh, bytes);
        // The group of the same name in the new queue replaces its group.
        let to = self.store.classes.key(fresh).ok_or(ApplyError)?.queue;
        if let (Some((from, at)), Some(name)) = (from.filter(|(from, _)| *from != to), group) {
            let number = self.hold_group(to, &name)?;
            self.job_mut(slot)?.set_group(Some(number));
            self.release_group(from, at);
        }
        self.release_class(old);
        if from_queue != to {
            self.renew_ageing(slot)?;
        }
        Ok(())
    }
}
