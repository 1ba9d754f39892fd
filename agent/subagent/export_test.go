package subagent

import (
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/memory/block"
)

// Shown returns the text that the parent's log shows for a result.
func (c Child) Shown(r Result) string { return c.shown(r) }

// Check checks what can be checked without the parent.
func (n New) Check() error { return n.check() }

// NameFor returns the name of a sub-agent.
func (n New) NameFor(parent agent.Agent) string { return n.nameFor(parent) }

// SettingsFor returns the settings of a sub-agent that has some tools.
func SettingsFor(parent agent.Agent, n New, has []string) (agent.Settings, error) {
	return settingsFor(parent, n, has)
}

// WithDefaults returns the grants of blocks, followed by the default grants that they lack.
func (n New) WithDefaults(has []block.Block) []Grant { return n.withDefaults(has) }
