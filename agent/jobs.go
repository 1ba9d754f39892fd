package agent

import (
	"github.com/riverqueue/river"
)

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
