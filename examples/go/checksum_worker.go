// A worker on go-redis: a job's payload is the path of a file, its result the SHA-256 of that file.
//
//	go run . -port 6379 -board checksums -name worker-1
//
// It does what ../checksum_worker.py does: BLOCK and SEEN in each claim, one heartbeat loop for all that it holds, the
// TOKEN in every verb. A job that is lost or called off stops its work. SIGTERM: it ends the file at hand and abandons
// the rest. What a broken connection leaves without an answer go-redis sends again, which SEEN and TOKEN make safe.
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	port  = flag.String("port", "6379", "of the server on this machine")
	board = flag.String("board", "checksums", "key of the board")
	name  = flag.String("name", "", "of this worker, unique on the board")
	lease = flag.Int("lease", 30000, "milliseconds that a claim holds without a heartbeat")
	ctx   = context.Background()
)

type job struct {
	record map[any]any     // id, token, payload and so on
	ours   context.Context // done when the job has ended, is lost or is called off
	leave  context.CancelFunc
}

// heartbeat keeps the leases of the jobs of the last claim, three times within each lease.
func heartbeat(client *redis.Client, claimed *atomic.Pointer[[]*job]) {
	for range time.Tick(time.Duration(*lease) * time.Millisecond / 3) {
		held, ids, tokens := []*job{}, []any{}, []any{}
		for _, j := range *claimed.Load() {
			if j.ours.Err() == nil {
				held, ids, tokens = append(held, j), append(ids, j.record["id"]), append(tokens, j.record["token"])
			}
		}
		if len(held) == 0 {
			continue
		}
		words := append([]any{"JOB.MHEARTBEAT", *board, *name, len(ids)}, ids...)
		words = append(append(append(words, "TOKENS", len(ids)), tokens...), "LEASE", *lease)
		replies, _ := client.Do(ctx, words...).Slice() // if this one fails, the next may get through
		for at, reply := range replies {
			if answer, ours := reply.(map[any]any); !ours || answer["cancel"] != int64(0) { // not ours: [code, detail]
				held[at].leave()
			}
		}
	}
}

// work gives the verb that ends the job, and its words.
func (j *job) work(stop context.Context) []any {
	if stop.Err() != nil {
		return []any{"JOB.ABANDON", "REASON", "the worker stops"}
	}
	hash := sha256.New()
	file, err := os.Open(j.record["payload"].(string))
	for err == nil && j.ours.Err() == nil {
		_, err = io.CopyN(hash, file, 1<<16)
	}
	defer file.Close()
	if err == io.EOF {
		return []any{"JOB.CONSUME", "RESULT", fmt.Sprintf("%x", hash.Sum(nil))}
	} else if err != nil {
		return []any{"JOB.FAIL", "unreadable", err.Error(), "NORETRY"}
	}
	return []any{"JOB.ABANDON", "REASON", "lost or called off"} // a lost one is refused: it is somebody else's
}

func end(client *redis.Client, j *job, outcome []any) {
	words := append([]any{outcome[0], *board, *name, j.record["id"]}, outcome[1:]...)
	err := client.Do(ctx, append(words, "TOKEN", j.record["token"])...).Err()
	if redis.HasErrorPrefix(err, "CANCELLED ") && outcome[0] == "JOB.CONSUME" {
		end(client, j, []any{"JOB.ABANDON", "REASON", "called off"})
	} else if err != nil {
		log.Print(*name, ": ", outcome[0], " ", j.record["id"], ": ", err) // no longer ours
	}
}

func main() {
	flag.Parse()
	stop, _ := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	// Each command takes a connection of the pool: a claim that waits holds up nothing else.
	// BLOCK stays below its read timeout of 3 s. It sends a command again for up to two minutes.
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + *port, ClientName: *name, MaxRetries: 240})
	var claimed atomic.Pointer[[]*job]
	claimed.Store(&[]*job{})
	go heartbeat(client, &claimed)
	for seen := any(0); stop.Err() == nil; {
		reply, err := client.Do(ctx, "JOB.CLAIM", *board, *name, "COUNT", 8, "LEASE", *lease, "BLOCK", 2000, "SEEN", seen).Slice()
		if err != nil && err != redis.Nil && !redis.HasErrorPrefix(err, "UNBLOCKED ") {
			log.Fatal(err)
		}
		var jobs []*job
		for _, record := range reply {
			j := &job{record: record.(map[any]any)}
			j.ours, j.leave = context.WithCancel(ctx)
			jobs, seen = append(jobs, j), j.record["token"] // they come in the order of their tokens
		}
		claimed.Store(&jobs)
		for _, j := range jobs {
			end(client, j, j.work(stop))
			j.leave()
		}
	}
}
