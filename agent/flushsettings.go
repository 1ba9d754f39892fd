package agent

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
)

// The modes of a flush.
const (
	FlushOff   = "off"
	FlushOn    = "flush"      // the model may write to any memory that it has a tool for
	Checkpoint = "checkpoint" // the model must write working memory; a compaction follows
)

// FlushSettings say when an agent's model gets a silent turn to write down what must survive. Zero fields use defaults.
type FlushSettings struct {
	Mode             string `json:"mode" enum:"off,flush,checkpoint" doc:"checkpoint: it must write working memory."`
	BeforeCompaction *bool  `json:"before_compaction,omitempty" required:"false" doc:"True if absent."`
	Tokens           int    `json:"tokens,omitempty" required:"false" doc:"Also at this size of a prompt, from 1,000."`
	SoftTokens       int    `json:"soft_tokens,omitempty" required:"false" doc:"Before the compaction's trigger; 4,000."`
	Instructions     string `json:"instructions,omitempty" required:"false" doc:"In place of Loci's."`
	TimeoutSeconds   int    `json:"timeout_seconds,omitempty" required:"false" doc:"For the whole turn, 1 to 300; 30."`
	MaxSteps         int    `json:"max_steps,omitempty" required:"false" doc:"Answers of the model, 1 to 10; 3."`
}

// The defaults and bounds of a flush.
const (
	defaultSoftTokens       = 4_000
	mostSoftShare           = 0.10 // share of the window, for small windows
	defaultCheckpointTokens = 50_000
	minFlushTokens          = 1_000
	defaultFlushTime        = 30 * time.Second
	mostFlushSeconds        = 300
	defaultFlushSteps       = 3
	mostFlushSteps          = 10
	checkpointSteps         = 2 // one answer, and another if it writes nothing
	maxFlushInstructions    = 20_000
	minFlushGap             = 10 // messages between two flushes that tokens begin
)

// Check returns ErrInvalid for the first setting that is out of its range.
func (f FlushSettings) Check() error {
	switch {
	case !slices.Contains([]string{FlushOff, FlushOn, Checkpoint}, f.Mode):
		return db.Invalid("flush.mode is %q; it must be one of off, flush, checkpoint", db.Short(f.Mode))
	case f.Tokens != 0 && (f.Tokens < minFlushTokens || f.Tokens > 100_000_000):
		return db.Invalid("flush.tokens is %d; it must be from %d to 100000000", f.Tokens, minFlushTokens)
	case f.SoftTokens < 0 || f.SoftTokens > 1_000_000:
		return db.Invalid("flush.soft_tokens is %d; it must be from 0 to 1000000", f.SoftTokens)
	case utf8.RuneCountInString(f.Instructions) > maxFlushInstructions:
		return db.Invalid("flush.instructions has %d characters; it may have at most %d",
			utf8.RuneCountInString(f.Instructions), maxFlushInstructions)
	case f.TimeoutSeconds < 0 || f.TimeoutSeconds > mostFlushSeconds:
		return db.Invalid("flush.timeout_seconds is %d; it must be from 1 to %d", f.TimeoutSeconds, mostFlushSeconds)
	case f.MaxSteps < 0 || f.MaxSteps > mostFlushSteps:
		return db.Invalid("flush.max_steps is %d; it must be from 1 to %d", f.MaxSteps, mostFlushSteps)
	case f.Mode != FlushOff && f.tokens() == 0 && !f.before():
		return db.Invalid("flush.before_compaction is false and flush.tokens is absent: nothing would begin the turn; give " +
			"one of them, or the mode off")
	}
	return nil
}

func (f *FlushSettings) on() bool { return f != nil && (f.Mode == FlushOn || f.Mode == Checkpoint) }

func (f FlushSettings) before() bool { return f.BeforeCompaction == nil || *f.BeforeCompaction }

// tokens returns the prompt size at which a flush begins; 0 if no size does.
func (f FlushSettings) tokens() int {
	if f.Mode == Checkpoint {
		return cmp.Or(f.Tokens, defaultCheckpointTokens)
	}
	return f.Tokens
}

func (f FlushSettings) time() time.Duration {
	return cmp.Or(time.Duration(f.TimeoutSeconds)*time.Second, defaultFlushTime)
}

func (f FlushSettings) steps() int {
	if f.Mode == Checkpoint {
		return cmp.Or(f.MaxSteps, checkpointSteps)
	}
	return cmp.Or(f.MaxSteps, defaultFlushSteps)
}

// Why a flush begins.
const (
	ForCompaction = "compaction"
	ForTokens     = "tokens"
)

// due returns why a flush begins with these tokens in this window; empty if it does not.
func (f FlushSettings) due(tokens, window int, c plan.Settings) string {
	if f.before() && tokens >= c.Limit(window)-f.soft(window) {
		return ForCompaction
	}
	if n := f.tokens(); n > 0 && tokens > n {
		return ForTokens
	}
	return ""
}

func (f FlushSettings) soft(window int) int {
	return min(cmp.Or(f.SoftTokens, defaultSoftTokens), int(mostSoftShare*float64(window)))
}

// flushText returns the message that begins a flush.
func (f FlushSettings) flushText(tools []string) string {
	text := f.Instructions
	switch {
	case text != "":
		text = frame.Neutralize(text)
	case f.Mode == Checkpoint:
		text = "Write a checkpoint of your work before older messages leave your view: call update_working_memory with the " +
			"task, what you found and decided (decisions, each with the seq or path that it rests on), what is open, and the " +
			"next step. It stays in your view. Write nothing else."
	default:
		text = "Older messages will soon leave your view. Before that, write down what must last and is not in your memory " +
			"yet: decisions, findings, names, open questions, the next step. Write each where it belongs, and repeat nothing. " +
			"If nothing is missing, call no tool. The user sees nothing of this turn, so do not answer the user now."
	}
	return frame.System + " This is a silent turn. " + text + " Your tools for it: " + strings.Join(tools, ", ") + "."
}
