//! Flows: several jobs that wait for each other, or are children of each other, posted together or
//! not at all.
//!
//! A decision checks the whole flow against the board as it is. The jobs are then posted one by
//! one, each after those that it waits for; their parents are set last, since a parent may be
//! posted after its child.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::env::Env;
use crate::error::Refusal;
use crate::job::awaited::AFTER_MOST;
use crate::job::kin::GENERATIONS;
use crate::job::DEFAULT_QUEUE;
use crate::quotas::Growth;
use crate::relations::dependencies::Outcome;
use crate::verbs::adopt::Adopted;
use crate::verbs::depend::After;
use crate::verbs::post::{Exists, Post};

/// The most nodes, and what these wait for, that the search for jobs which would wait for each other looks
/// at, for all parents together: some tens of milliseconds.
const LOOKS_MOST: usize = 100_000;

/// A job to post, with a name by which others in its flow refer to it.
#[derive(Debug, Clone, Default)]
pub struct Node<'a> {
    /// The name, with no meaning outside of the flow.
    pub label: &'a [u8],
    /// The job: AFTER and PARENT name labels, else ids of nodes, else ids on the board.
    pub post: Post<'a>,
}

/// A flow that the board accepts: which node waits for which, and the order of the posts.
pub struct Flow<'a> {
    nodes: Vec<Node<'a>>,
    /// For each job that AFTER names, its node, if it is one.
    awaited: Vec<Vec<Option<usize>>>,
    parents: Vec<Option<usize>>,
    order: Vec<usize>,
    /// The ids of the nodes that have been posted.
    ids: Vec<Vec<u8>>,
    /// Those that nodes choose.
    chosen: BTreeSet<&'a [u8]>,
}

impl<'a> Flow<'a> {
    /// The order in which the nodes are posted: as the request names them, but none before a node
    /// that it waits for.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The post of one node, once all nodes that it waits for have been posted; its parent follows.
    pub fn post(&self, at: usize) -> Option<Post<'_>> {
        let post = &self.nodes.get(at)?.post;
        let open = post.after.as_ref().is_some_and(|after| after.children.is_some());
        let beside = Some(&self.chosen);
        let mut post = Post { parent: None, share: None, open, beside, ..post.clone() };
        if let Some(after) = &mut post.after {
            for ((id, _), node) in after.jobs.iter_mut().zip(self.awaited.get(at)?) {
                if let Some(node) = node {
                    *id = self.ids.get(*node)?;
                }
            }
        }
        Some(post)
    }

    /// Records the id of a node that has been posted.
    pub fn came(&mut self, at: usize, id: Vec<u8>) {
        if let Some(place) = self.ids.get_mut(at) {
            *place = id;
        }
    }

    /// The ids of the jobs, in the order of the nodes.
    pub fn ids(&self) -> &[Vec<u8>] {
        &self.ids
    }

    /// The ties of children to parents, once all nodes have been posted.
    pub fn adopted(&self, board: &Board) -> Result<Vec<Adopted>, Refusal> {
        let mut all = Vec::new();
        for ((node, parent), id) in self.nodes.iter().zip(&self.parents).zip(&self.ids) {
            let Some(named) = node.post.parent else { continue };
            let parent = parent.and_then(|at| self.ids.get(at)).map_or(named, |id| id);
            let slot = board.find(id).ok_or(Refusal::NoJob)?;
            all.push(board.adopt(slot, parent, node.post.share)?);
        }
        Ok(all)
    }
}

impl Board {
    /// Decides whether a flow may be posted. O(n log n) for n nodes and all that they wait for.
    pub fn plan_flow<'a>(&self, env: &Env<'_>, nodes: Vec<Node<'a>>) -> Result<Flow<'a>, Refusal> {
        let names = Names::of(&nodes)?;
        let mut flow = Flow {
            awaited: Vec::with_capacity(nodes.len()),
            parents: Vec::with_capacity(nodes.len()),
            order: Vec::with_capacity(nodes.len()),
            ids: vec![Vec::new(); nodes.len()],
            chosen: names.ids.keys().copied().collect(),
            nodes: Vec::new(),
        };
        self.check_queues(&nodes.iter().map(|node| node.post.queue.unwrap_or(DEFAULT_QUEUE)).collect())?;
        let keys = nodes.iter().filter_map(|node| node.post.unique);
        self.check_new_keys(keys.filter(|unique| self.is_new_key(unique.key)).count())?;
        let mut growth = Growth::default();
        for (at, node) in nodes.iter().enumerate() {
            let within = |refusal: Refusal| refusal.in_node(node.label);
            let after = node.post.after.as_ref().map_or(&[][..], |after| &after.jobs);
            let awaited: Vec<Option<usize>> = after.iter().map(|(id, _)| names.find(id)).collect();
            self.check_node(env, node, (&awaited, at), &mut growth).map_err(within)?;
            let parent = node.post.parent.and_then(|id| names.find(id));
            if let (None, Some(id)) = (parent, node.post.parent) {
                self.check_foreign_parent(id, nodes.len()).map_err(|r| within(r.of(id)))?;
            }
            flow.awaited.push(awaited);
            flow.parents.push(parent);
        }
        flow.order = order(&flow.awaited).map_err(|at| Refusal::Cycle.in_node(label(&nodes, at)))?;
        self.check_deadlocks(&nodes, &flow)?;
        self.check_users(&nodes, &flow.order)?;
        self.check_generations(&nodes, &flow.parents)?;
        self.check_posts(&growth, &Post::default(), nodes.len())?;
        flow.nodes = nodes;
        Ok(flow)
    }

    /// Refuses a node by itself, as the board is now; other nodes do not count.
    fn check_node(
        &self,
        env: &Env<'_>,
        node: &Node<'_>,
        (awaited, at): (&[Option<usize>], usize),
        growth: &mut Growth,
    ) -> Result<(), Refusal> {
        let foreign = |after: &After<'_>| {
            let named = after.jobs.iter().zip(awaited);
            let jobs = named.filter(|(_, node)| node.is_none()).map(|((id, on), _)| (id.to_vec(), *on));
            jobs.collect::<Vec<_>>()
        };
        let jobs = node.post.after.as_ref().map(foreign).unwrap_or_default();
        let after = node.post.after.as_ref().map(|after| After {
            jobs: jobs.iter().map(|(id, on)| (&id[..], *on)).collect(),
            strict: after.strict,
            children: None,
        });
        if let Some(after) = &after {
            let edges = self.decide_edges(env, self.store.jobs.next_free(), node.post.id, after, None)?;
            let unmet = edges.iter().filter(|edge| self.outcome(edge) != Outcome::Met).count();
            let within: BTreeSet<usize> = awaited.iter().flatten().copied().collect();
            if unmet + within.len() > AFTER_MOST {
                return Err(Refusal::Limit("dependencies"));
            }
        }
        let post = Post { exists: Exists::Refuse, parent: None, after, ..node.post.clone() };
        let answer = self.post_unbounded(env, &post, at as u64)?;
        if self.is_bounded(&post) {
            self.grow(growth, &post, &answer);
        }
        Ok(())
    }

    /// Refuses a node when its user will by then have as many live jobs of its name as it allows.
    fn check_users(&self, nodes: &[Node<'_>], order: &[usize]) -> Result<(), Refusal> {
        let mut coming: BTreeMap<(&[u8], &[u8]), u64> = BTreeMap::new();
        for node in order.iter().filter_map(|at| nodes.get(*at)) {
            let Some(user) = node.post.user else { continue };
            let name = node.post.name.unwrap_or_default();
            let before = coming.entry((user, name)).or_default();
            let live = self.live_of(user, name).saturating_add(*before);
            if node.post.most_live.is_some_and(|most| live as i64 >= most) {
                return Err(Refusal::Limit("maxlive").in_node(node.label));
            }
            *before += 1;
        }
        Ok(())
    }

    /// Refuses nodes by which jobs would wait for each other because some wait for their children.
    fn check_deadlocks(&self, nodes: &[Node<'_>], flow: &Flow<'_>) -> Result<(), Refusal> {
        let mut awaited = flow.awaited.clone();
        for (at, parent) in flow.parents.iter().enumerate() {
            let waits = |at: usize| nodes.get(at)?.post.after.as_ref()?.children;
            if let Some(list) = parent.filter(|at| waits(*at).is_some()).and_then(|at| awaited.get_mut(at)) {
                list.push(Some(at));
            }
        }
        order(&awaited).map_err(|at| Refusal::Cycle.in_node(label(nodes, at)))?;
        if flow.awaited.iter().flatten().all(Option::is_some) {
            // No node waits for a job of the board.
            return Ok(());
        }
        let mut looks = 0;
        // What new children of such jobs of the board wait for, by way of other nodes too.
        let mut ways: BTreeMap<u32, Way> = BTreeMap::new();
        for (at, node) in nodes.iter().enumerate() {
            let foreign = flow.parents.get(at).is_some_and(Option::is_none);
            let parent = node.post.parent.filter(|_| foreign).and_then(|id| self.find(id));
            let Some(parent) = parent.filter(|parent| self.child_wait(*parent).is_some()) else { continue };
            let way = ways.entry(parent).or_insert_with(|| Way { child: at, ..Way::default() });
            let mut ahead = vec![at];
            while let Some(at) = ahead.pop() {
                if !way.nodes.insert(at) {
                    continue;
                }
                let list = awaited.get(at).map_or(&[][..], |list| list);
                looks += 1 + list.len();
                if looks > LOOKS_MOST {
                    return Err(Refusal::Limit("dependency chain").in_node(label(nodes, way.child)));
                }
                let after = nodes.get(at).and_then(|node| node.post.after.as_ref());
                let jobs = after.map_or(&[][..], |after| &after.jobs);
                let foreign = list.iter().zip(jobs).filter(|(node, _)| node.is_none());
                way.jobs.extend(foreign.filter_map(|(_, (id, _))| self.find(id)));
                ahead.extend(list.iter().flatten());
            }
        }
        let jobs = ways.iter().map(|(parent, way)| (*parent, &way.jobs[..])).collect();
        self.check_ways(&jobs).map_err(|(parent, refusal)| {
            let child = ways.get(&parent).map_or(0, |way| way.child);
            refusal.in_node(label(nodes, child))
        })
    }

    fn check_foreign_parent(&self, id: &[u8], n: usize) -> Result<(), Refusal> {
        let parent = self.find(id).ok_or(Refusal::NoJob)?;
        self.check_parent(self.store.jobs.next_free(), parent)?;
        self.check_shares(parent, n)
    }

    /// Refuses nodes that would be among their own ancestors, or have too many of them.
    fn check_generations(&self, nodes: &[Node<'_>], parents: &[Option<usize>]) -> Result<(), Refusal> {
        let parent_of = |at: usize| parents.get(at).copied().flatten();
        // The depth of a node below its first ancestor in the flow.
        let mut depths: Vec<Option<usize>> = vec![None; nodes.len()];
        for start in 0..nodes.len() {
            let mut path = Vec::new();
            let mut next = Some(start);
            let depth = loop {
                let Some(at) = next else { break 0 };
                if let Some(depth) = depths.get(at).copied().flatten() {
                    break depth + 1;
                }
                if path.len() > nodes.len() {
                    return Err(Refusal::Ancestor.in_node(label(nodes, at)));
                }
                path.push(at);
                next = parent_of(at);
                if next.is_none() {
                    let foreign = nodes.get(at).and_then(|node| self.find(node.post.parent?));
                    break foreign.map_or(0, |parent| self.depth(parent) + 1);
                }
            };
            for (above, at) in path.iter().rev().enumerate() {
                if depth + above > usize::from(GENERATIONS) {
                    return Err(Refusal::Limit("generations").in_node(label(nodes, *at)));
                }
                if let Some(place) = depths.get_mut(*at) {
                    *place = Some(depth + above);
                }
            }
        }
        Ok(())
    }
}

/// What the new children of a job of the board wait for, by way of other nodes too.
#[derive(Default)]
struct Way {
    /// One of them.
    child: usize,
    nodes: BTreeSet<usize>,
    /// Jobs of the board.
    jobs: Vec<u32>,
}

fn label<'a>(nodes: &[Node<'a>], at: usize) -> &'a [u8] {
    nodes.get(at).map_or(&[], |node| node.label)
}

/// The names of the nodes.
struct Names<'a> {
    labels: BTreeMap<&'a [u8], usize>,
    ids: BTreeMap<&'a [u8], usize>,
}

impl<'a> Names<'a> {
    /// Refuses two nodes with the same label, id or key.
    fn of(nodes: &[Node<'a>]) -> Result<Names<'a>, Refusal> {
        let mut names = Names { labels: BTreeMap::new(), ids: BTreeMap::new() };
        let mut keys = BTreeSet::new();
        for (at, node) in nodes.iter().enumerate() {
            if names.labels.insert(node.label, at).is_some() {
                return Err(Refusal::Exists(node.label.into()).in_node(node.label));
            }
            if let Some(id) = node.post.id {
                if names.ids.insert(id, at).is_some() {
                    return Err(Refusal::Exists(id.into()).in_node(node.label));
                }
            }
            if let Some(key) = node.post.unique.filter(|unique| !keys.insert(unique.key)) {
                return Err(Refusal::Exists(key.key.into()).in_node(node.label));
            }
        }
        Ok(names)
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        self.labels.get(name).or_else(|| self.ids.get(name)).copied()
    }
}

/// Orders nodes so that each is behind those that it waits for, as named where there is a choice;
/// `Err` with a node that waits for itself.
fn order(awaited: &[Vec<Option<usize>>]) -> Result<Vec<usize>, usize> {
    let mut left: Vec<usize> = Vec::with_capacity(awaited.len());
    let mut waiters: Vec<Vec<usize>> = vec![Vec::new(); awaited.len()];
    for (at, others) in awaited.iter().enumerate() {
        let others: BTreeSet<usize> = others.iter().flatten().copied().collect();
        left.push(others.len());
        for other in others {
            if let Some(list) = waiters.get_mut(other) {
                list.push(at);
            }
        }
    }
    let mut free: BTreeSet<usize> =
        left.iter().enumerate().filter(|(_, n)| **n == 0).map(|(at, _)| at).collect();
    let mut order = Vec::with_capacity(awaited.len());
    while let Some(at) = free.pop_first() {
        order.push(at);
        for waiter in waiters.get(at).map_or(&[][..], |list| list) {
            if let Some(n) = left.get_mut(*waiter) {
                *n -= 1;
                if *n == 0 {
                    free.insert(*waiter);
                }
            }
        }
    }
    // From any node that is left, following what it waits for ends in a circle.
    let stuck = |at: &usize| left.get(*at).is_some_and(|n| *n > 0);
    let Some(mut at) = (0..left.len()).find(|at| stuck(at)) else { return Ok(order) };
    let mut seen = BTreeSet::new();
    while seen.insert(at) {
        let next = awaited.get(at).and_then(|others| others.iter().flatten().copied().find(|o| stuck(o)));
        at = next.unwrap_or(at);
    }
    Err(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_after_those_that_they_wait_for_and_else_as_named() {
        let some = |list: &[usize]| list.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(order(&[some(&[2]), some(&[]), some(&[]), some(&[0, 2, 2])]), Ok(vec![1, 2, 0, 3]));
        assert_eq!(order(&[some(&[1]), some(&[2]), some(&[3, 1]), some(&[])]), Err(1));
        assert_eq!(order(&[some(&[0])]), Err(0));
    }
}
