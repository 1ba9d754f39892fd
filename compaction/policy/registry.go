package policy

import "reflect"

// mechanisms maps name → kind of step.
var mechanisms = byName(
	// what enters
	&Bootstrap{}, &CommandTail{}, &ImportantTail{}, &JSONPreview{}, &LargestSlice{}, &Offload{}, &ReadBounds{},
	&Snip{}, &TokenClip{},
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
	&RestoreFiles{}, &RestoreSkills{}, &HardTruncate{},
)

func byName(steps ...described) map[string]Mechanism {
	all := make(map[string]Mechanism, len(steps))
	for _, s := range steps {
		m := s.describe()
		all[m.Name] = m
	}
	return all
}

// ofType maps a step's type to its mechanism's name.
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
