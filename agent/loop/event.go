package loop

import (
	"time"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/recall"
)

// Event is something that happened in a run, for its client. Exactly one of Message, Delta, Withdrawn, Dropped and End
// is set.
type Event struct {
	Message  *recall.Message // a message that was appended to the log
	Streamed bool            // with Message: deltas of it were sent before

	Delta     *Delta
	Withdrawn string   // id of a message that is not stored, although deltas of it were sent
	Dropped   []string // ids of calls that the stored message lacks, although deltas of them were sent
	End       *End
}

// Delta is a piece of an answer that is not stored yet.
type Delta struct {
	model.Delta
	MessageID string // id of the answer
	StepID    string
	Asked     bool // the client must run or approve the call
	At        time.Time
}

// End is the end of a run.
type End struct {
	StopReason string
	Usage      Usage
	Failure    *Failure // nil if the run did not fail
}

// Failure says why a run failed. Status and Detail are set for a provider's failure.
type Failure struct {
	Type   string `json:"type"`
	Text   string `json:"message"`
	Status int    `json:"status,omitempty"` // HTTP status for a request without a stream; 0 for other failures
	Detail string `json:"detail,omitempty"` // the provider's words, redacted

	// After is the pause that the provider asks for with a limit of requests. It is 0 if there is none, and always in the
	// log.
	After time.Duration `json:"-"`
}

// Usage counts tokens, as reported by the models of a run.
type Usage struct {
	Steps      int `db:"steps"`
	Prompt     int `db:"prompt_tokens"`
	Completion int `db:"completion_tokens"`
	Cached     int `db:"cached_tokens"`
	CacheWrite int `db:"cache_write_tokens"`
	Reasoning  int `db:"reasoning_tokens"`
	Context    int `db:"context_tokens"` // the last prompt and its answer
}

// interruption returns the event that ends a run for its clients, although the run goes on later.
func interruption(text string) Event {
	return Event{End: &End{StopReason: StopError, Failure: &Failure{Type: Interrupted, Text: text}}}
}

// Interrupted is the Failure type of a run that goes on later.
const Interrupted = "interrupted"

// InterruptedText tells a run's client that the run goes on later.
func InterruptedText(run string) string {
	return "The server stopped before the run ended. The run goes on later: " + readsLater(run)
}

// OutageText tells a run's client that the run goes on once the database serves again.
func OutageText(run string) string {
	return "The database does not answer, or stores nothing, so that this answer ends before the run. The run goes on " +
		"when it does: " + readsLater(run)
}

// readsLater says how a run's client learns what became of the run.
func readsLater(run string) string {
	return "GET /v1/runs/" + run + " tells how it ends, and /v1/runs/" + run + "/messages has what it says. Do not send " +
		"the request again, unless with its otids"
}
