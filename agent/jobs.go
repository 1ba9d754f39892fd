package agent

import (
	"github.com/riverqueue/river"
)

// Queues returns the queues for jobs of agents, with the number of workers that a server gives each. Workers mostly
// wait for a model.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{queueWindow: {MaxWorkers: 4}, queueWorking: {MaxWorkers: 4},
		queueIdle: {MaxWorkers: 2}}
}

// Work registers the workers for jobs of agents.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, worker[windowArgs](summaryLimit, s.checkWindowLater))
	river.AddWorker(workers, worker[workingArgs](workingTimeout, s.TakeUpTurn))
	river.AddWorker(workers, worker[idleArgs](summaryLimit, s.checkIdleLater))
}
