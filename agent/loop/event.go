package loop

import (
	"time"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/recall"
)

// Event is something that happened in a run, for its client. One of Message, Delta, Withdrawn, Dropped and End is set.
type Event struct {
	Message  *recall.Message // was appended to the log
	Streamed bool            // with Message: its deltas were sent

	Delta     *Delta
	Withdrawn string   // the id of a message of which deltas were sent, and which is not stored
	Dropped   []string // the ids of calls of which deltas were sent, and which the stored message does not have
	End       *End
}

// Delta is a piece of an answer before it is stored.
type Delta struct {
	model.Delta
	MessageID string // of the answer
	StepID    string
	Asked     bool // a call is the client's to run or to approve
	At        time.Time
}

// End is the end of a run.
type End struct {
	StopReason string
	Usage      Usage
	Failure    *Failure // nil unless the run failed
}

// Failure says why a run failed. Status and Detail are those of a provider's failure.
type Failure struct {
	Type   string `json:"type"`
	Text   string `json:"message"`
	Status int    `json:"status,omitempty"` // by which a request without a stream is answered; 0 for others
	Detail string `json:"detail,omitempty"` // the provider's own words, redacted

	// After is the pause that the provider asks for with a limit of requests; 0 if it asks for none, and in the log.
	After time.Duration `json:"-"`
}

// Usage is what the models of a run counted, in tokens.
type Usage struct {
	Steps      int `db:"steps"`
	Prompt     int `db:"prompt_tokens"`
	Completion int `db:"completion_tokens"`
	Cached     int `db:"cached_tokens"`
	CacheWrite int `db:"cache_write_tokens"`
	Reasoning  int `db:"reasoning_tokens"`
	Context    int `db:"context_tokens"` // of the last prompt, and of its answer
}

// interruption is the end of a run for its clients that goes on later.
func interruption(text string) Event {
	return Event{End: &End{StopReason: StopError, Failure: &Failure{Type: Interrupted, Text: text}}}
}

// Interrupted is the type of the failure of a run that goes on later.
const Interrupted = "interrupted"

// InterruptedText tells the client of a run that the run goes on later.
func InterruptedText(run string) string {
	return "The server stopped before the run ended. The run goes on later: " + readsLater(run)
}

// OutageText tells the client of a run that the run goes on when the database serves again.
func OutageText(run string) string {
	return "The database does not answer, or stores nothing, so that this answer ends before the run. The run goes on " +
		"when it does: " + readsLater(run)
}

// readsLater says how the client of a run learns what became of it.
func readsLater(run string) string {
	return "GET /v1/runs/" + run + " tells how it ends, and /v1/runs/" + run + "/messages has what it says. Do not send " +
		"the request again, unless with its otids"
}
