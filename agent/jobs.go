package agent

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// tries is how often a job of an agent is tried.
const tries = 3

// summaryLimit is the limit of a job that waits for one summary.
const summaryLimit = 5 * time.Minute

// Queues returns the queues of the jobs of agents, with the workers that a server gives each. Workers spend most of
// their time waiting for a model.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{queueWindow: {MaxWorkers: 4}, queueWorking: {MaxWorkers: 4},
		queueIdle: {MaxWorkers: 2}}
}

// Work registers the workers of the jobs of agents.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, worker[windowArgs](summaryLimit, s.CheckWindow))
	river.AddWorker(workers, worker[workingArgs](workingTimeout, s.TakeUpTurn))
	river.AddWorker(workers, worker[idleArgs](summaryLimit, s.checkIdleLater))
}

// ofConversation is the arguments that all jobs of agents have.
type ofConversation struct {
	queue.Start
	Org          db.Org `json:"org"`
	AgentID      string `json:"agent_id"`
	Conversation string `json:"conversation"`
}

func (of ofConversation) conversation() ofConversation { return of }

// worker returns the worker of a kind of jobs. A job ends if its conversation was deleted, or if nothing of it can
// leave the view.
func worker[A interface {
	river.JobArgs
	conversation() ofConversation
}](limit time.Duration, do func(_ context.Context, _ db.Org, agentID, conversation string) error) *queue.Worker[A] {
	return &queue.Worker[A]{Limit: limit, EndInvalid: true, Do: func(ctx context.Context, job *river.Job[A]) error {
		of := job.Args.conversation()
		return do(ctx, of.Org, of.AgentID, of.Conversation)
	}}
}
