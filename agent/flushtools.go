package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/loci-memory/loci/db"
)

// memoryTools are the tools that write to memory, in the order in which a flush names them.
var memoryTools = []string{"update_working_memory", "memory_files", "memory_insert", "memory_replace", "memory_rethink",
	"memory_apply_patch", "memory", "core_memory_append", "core_memory_replace", "archival_memory_insert",
	"archival_memory_update"}

// flushTools returns the tools that the agent's model has in a flush: those that write to memory, except tools that its
// program runs or approves. A checkpoint has exactly one tool, even if the agent does not have it otherwise.
func (a Agent) flushTools(target PromptTarget) (names []string) {
	if a.Settings.Flush == nil {
		return nil
	}
	if a.Settings.Flush.Mode == Checkpoint {
		return []string{"update_working_memory"}
	}
	var rules []toolRule
	_ = json.Unmarshal(a.Settings.ToolRules, &rules) // clients may store anything
	for _, name := range memoryTools {
		asks := slices.ContainsFunc(rules, func(r toolRule) bool { return r.Type == "requires_approval" && r.Tool == name })
		if a.HasTool(name) && !asks && !hasTool(target.MoreTools, name) {
			names = append(names, name)
		}
	}
	return names
}

// awaitsFlush reports whether the compaction of a prompt's conversation waits for a flush that has not happened yet. It
// returns false once the prompt fills its window.
func (s *Store) awaitsFlush(ctx context.Context, org db.Org, p Prompt) (bool, error) {
	settings := p.Agent.Settings.Flush
	if !settings.on() || !settings.before() || tooLong(p.Conversation) || p.Tokens.Total >= p.window() ||
		len(p.Agent.flushTools(PromptTarget{})) == 0 {
		return false, nil
	}
	f, err := s.flushOf(ctx, org, p.Conversation)
	if errors.Is(err, db.ErrNotFound) {
		return true, nil
	}
	return err == nil && f.Status == FlushOpen, err
}
