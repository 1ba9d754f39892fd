package policy

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
