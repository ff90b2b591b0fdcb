// A worker on go-redis: a job's payload is the path of a file, its result the SHA-256 of that file.
//
//	go run . -port 6379 -board checksums -name worker-1
//
// It does what ../checksum_worker.py does: ANEW at its start, BLOCK in each claim, SEEN after one without an answer,
// one heartbeat loop for all that it holds, the TOKEN in every verb. A job that is lost or called off stops its work.
// SIGTERM: it ends the file at hand and abandons the rest. What a broken connection leaves without an answer is sent
// again, which SEEN and TOKEN make safe.
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
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	port  = flag.String("port", "6379", "of the server on this machine")
	board = flag.String("board", "checksums", "key of the board")
	name  = flag.String("name", "", "of this worker, unique among those that live")
	lease = flag.Int("lease", 30000, "milliseconds that a claim holds without a heartbeat")
	ctx   = context.Background()
	held  sync.Map // the id by the token, of each job in hand until it is lost or called off

	transient = regexp.MustCompile("^(LOADING|READONLY|MASTERDOWN|TRYAGAIN|BUSY|UNBLOCKED) ") // it will come round
)

// send sends a command until it is answered, for two minutes at least; from the second time on with `again`.
func send(client *redis.Client, words []any, again ...any) *redis.Cmd {
	for all, tries := words, 0; ; all, tries = append(words, again...), tries+1 {
		answer := client.Do(ctx, all...)
		err := answer.Err()
		if _, replied := err.(redis.Error); replied && !transient.MatchString(err.Error()) || err == nil || tries == 600 {
			return answer
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// heartbeat keeps the leases of the jobs in hand, three times within each lease.
func heartbeat(client *redis.Client) {
	for range time.Tick(time.Duration(*lease) * time.Millisecond / 3) {
		var ids, tokens []any
		held.Range(func(token, id any) bool { ids, tokens = append(ids, id), append(tokens, token); return true })
		if len(ids) > 0 {
			words := append([]any{"JOB.MHEARTBEAT", *board, *name, len(ids)}, ids...)
			words = append(append(append(words, "TOKENS", len(ids)), tokens...), "LEASE", *lease)
			replies, _ := client.Do(ctx, words...).Slice() // if this one fails, the next may get through
			for at, reply := range replies {
				if answer, ours := reply.(map[any]any); !ours || answer["cancel"] != int64(0) { // not ours: [code, detail]
					held.Delete(tokens[at])
				}
			}
		}
	}
}

// work gives the verb that ends the job, and its words.
func work(job map[any]any, stop context.Context) []any {
	if stop.Err() != nil {
		return []any{"JOB.ABANDON", "REASON", "the worker stops"}
	}
	hash := sha256.New()
	file, err := os.Open(job["payload"].(string))
	for ours := true; err == nil && ours; _, ours = held.Load(job["token"]) {
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

func end(client *redis.Client, job map[any]any, outcome []any) {
	words := append([]any{outcome[0], *board, *name, job["id"]}, outcome[1:]...)
	err := send(client, append(words, "TOKEN", job["token"])).Err()
	if redis.HasErrorPrefix(err, "CANCELLED ") && outcome[0] == "JOB.CONSUME" {
		end(client, job, []any{"JOB.ABANDON", "REASON", "called off"})
	} else if err != nil {
		log.Print(*name, ": ", outcome[0], " ", job["id"], ": ", err) // no longer ours
	}
}

func main() {
	flag.Parse()
	stop, _ := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	// Each command takes a connection of the pool: a claim that waits holds up nothing else.
	// BLOCK stays below its read timeout of 3 s. It sends nothing again by itself: `send` knows which had no answer.
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + *port, ClientName: *name, MaxRetries: -1})
	log.Print(send(client, []any{"JOB.WORKER", "REGISTER", *board, *name, "ANEW"})) // what it held before lapses
	go heartbeat(client)
	for stop.Err() == nil {
		words := []any{"JOB.CLAIM", *board, *name, "COUNT", 8, "LEASE", *lease, "BLOCK", 2000}
		jobs, err := send(client, words, "SEEN", 0).Slice() // it holds nothing: what comes back is that of a lost reply
		if err != nil && err != redis.Nil {
			log.Fatal(err)
		}
		for _, job := range jobs {
			held.Store(job.(map[any]any)["token"], job.(map[any]any)["id"])
		}
		for _, job := range jobs {
			end(client, job.(map[any]any), work(job.(map[any]any), stop))
			held.Delete(job.(map[any]any)["token"])
		}
	}
	log.Print(send(client, []any{"JOB.WORKER", "DEREGISTER", *board, *name}))
}
