/** Options of a post under the names that other libraries give them, in lower case and without underscores. */
const OTHERS: Readonly<Record<string, string>> = {
  attempts: "retries, the tries after the first: attempts 3 are 'retries: 2'",
  maxretries: "'retries: 3'",
  maxtries: "retries, the tries after the first: 3 are 'retries: 2'",
  jobid: "'id'",
  taskid: "'id'",
  removeoncomplete: "'retain': how long the record stays once the job is complete, '0s' for not at all",
  removeonfail: 'the setting retain-failed of the board: how long failed jobs stay',
  resultttl: "'retain'",
  ignoreresult: "retain: '0s'",
  countdown: "delay: '10s'",
  eta: "'at', a Date or Unix ms",
  timestamp: "'at', a Date or Unix ms",
  expires: "expire: '1h'",
  ttl: "expire: '1h'",
  jobtimeout: "timeout: '5m'",
  timelimit: "timeout: '5m'",
  softtimelimit: "timeout: '5m'",
  lifo: "'priority': a higher one comes first",
  repeat: 'a schedule: task.schedule(…), board.scheduleSet(…)',
  dependson: "after: […], the ids of those jobs",
  deduplication: "'unique'",
  debounce: "'unique', with onconflict: 'debounce'",
  sizelimit: 'the setting max-payload of the server',
};

/** What to write in place of an option of another library. */
export function otherWord(name: string): string | undefined {
  const found = name.toLowerCase().replaceAll('_', '');
  return Object.hasOwn(OTHERS, found) ? OTHERS[found] : undefined;
}
