package policy

// Stage says when a step runs. The order of stages is fixed, so that no later stage makes a view too large again.
type Stage int

// The stages, in order.
const (
	Enter     Stage = iota // bounds each result by itself, once
	Normalize              // repairs pairs, shows equal texts once
	Prune                  // shows less of old content, before each prompt
	Pressure               // says when to compact
	Compact                // says what leaves and how it is summarized
	Restore                // shows again what the work needs
	Truncate               // hides the oldest messages if the view is still too large
)

var stageNames = []string{"enter", "normalize", "prune", "pressure", "compact", "restore", "truncate"}

func (s Stage) String() string { return stageNames[s] }

// Mechanism describes a kind of step.
type Mechanism struct {
	Name   string // the step's name in policies
	Stage  Stage
	Source string // the harness that has it
	Words  string // what it does, in a sentence for people
	New    func() Step

	Settings map[string]string // what a setting does, if its field's tag does not say it
}

// described is a step that describes its mechanism. Each step does so in the file named after it.
type described interface{ describe() Mechanism }
