package policy

import "reflect"

// Stage is when a step runs. Stages have a fixed order, so that nothing that a later one adds overflows.
type Stage int

// The stages, in their order.
const (
	Enter     Stage = iota // bounds each result once, by itself
	Normalize              // repairs pairs, shows equal texts once
	Prune                  // shows less of what is old, before each prompt
	Pressure               // says when to compact
	Compact                // says what leaves, and how it is summarized
	Restore                // shows again what the work needs
	Truncate               // hides the oldest messages of a view that is still too large
)

var stageNames = []string{"enter", "normalize", "prune", "pressure", "compact", "restore", "truncate"}

func (s Stage) String() string { return stageNames[s] }

// Mechanism describes a kind of step.
type Mechanism struct {
	Name   string // of the step, in policies
	Stage  Stage
	Source string // the harness that has it
	Words  string // what it does, for a reader
	New    func() Step

	Settings map[string]string // what each setting does, where the tag of its field does not say it
}

// described is a step that describes its mechanism: each does, in the file that is named for it.
type described interface{ describe() Mechanism }

// mechanisms are all kinds of steps, by name.
var mechanisms = byName(
	// what enters
	&CommandTail{}, &ImportantTail{}, &JSONPreview{}, &LargestSlice{}, &Offload{}, &ReadBounds{}, &Snip{}, &TokenClip{},
	// normalize
	&Dedup{}, &IdempotentCalls{},
	// prune
	&AgeTTL{}, &ApplyIf{}, &CacheTTL{}, &ClearThinking{}, &ClearToolUses{}, &Microcompact{}, &OldArguments{}, &OneLine{},
	&Recency{},
	// pressure
	&Buffer{}, &ByteCount{}, &Fraction{}, &Idle{}, &MessageCount{}, &QuietPoint{}, &Reserve{}, &Tokens{}, &TurnCount{},
	&When{},
	// compact
	&AutoCompact{}, &Checkpoint{}, &Full{}, &KeepRecent{}, &Notes{}, &OlderTurns{}, &OldestShare{}, &Provider{},
	&Safeguard{}, &Slide{},
	// restore and truncate
	&RestoreFiles{}, &HardTruncate{},
)

func byName(steps ...described) map[string]Mechanism {
	all := make(map[string]Mechanism, len(steps))
	for _, s := range steps {
		m := s.describe()
		all[m.Name] = m
	}
	return all
}

// ofType names the mechanism of each type of step.
var ofType = func() map[reflect.Type]string {
	names := make(map[reflect.Type]string, len(mechanisms))
	for name, m := range mechanisms {
		names[reflect.TypeOf(m.New())] = name
	}
	return names
}()

// NameOf returns the name of a step's mechanism.
func NameOf(s Step) string { return ofType[reflect.TypeOf(s)] }

// Describe returns the mechanism of a step.
func Describe(s Step) Mechanism { return mechanisms[NameOf(s)] }

func stageOf(s Step) Stage { return mechanisms[NameOf(s)].Stage }
