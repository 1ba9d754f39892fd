package agentfile

import (
	"encoding/json"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

func (e *export) agentFields() agentFields {
	a, s := e.agent, e.agent.Settings
	fields := agentFields{Settings: s.ModelSettings, Compaction: s.CompactionSettings, MadeFor: a.MadeFor(),
		RecallScope: s.RecallScope, Working: s.WorkingMemory, OpenOnAttach: s.OpenOnAttach}
	if s.Flush != nil {
		fields.Flush, _ = json.Marshal(s.Flush) // plain values can be marshaled
	}
	if s.Handover != nil {
		fields.Handover, _ = json.Marshal(s.Handover) // plain values can be marshaled
	}
	if s.Prompt != nil {
		fields.Prompt, _ = json.Marshal(s.Prompt) // plain values can be marshaled
	}
	if s.Skills != nil {
		fields.Skills, _ = json.Marshal(s.Skills) // plain values can be marshaled
	}
	if s.Recall != nil {
		fields.Recall, _ = json.Marshal(s.Recall) // plain values can be marshaled
	}
	if s.Gateway != nil {
		fields.Gateway, _ = json.Marshal(s.Gateway) // plain values can be marshaled
	}
	if notInNames.MatchString(a.Name) {
		fields.Name = a.Name
	}
	if e.Full {
		fields.System, fields.Model, fields.Embedding = &a.System, a.Model, a.Embedding
		fields.Autoclear, fields.Sleeptime = s.MessageBufferAutoclear, s.EnableSleeptime
	}
	return fields
}

// makers returns who made and last changed a custom tool. Only a full file says so, because others must not reveal the
// server's users.
func (e *export) makers(t agent.PortableTool) db.Makers {
	if e.Full {
		return t.Makers
	}
	return db.Makers{}
}

func definitionOf(d agent.SubagentDefinition) definition {
	return definition{d.Name, d.Description, d.Given, d.CreatedAt, d.UpdatedAt}
}

func (e *export) lociFields() lociFields {
	a := e.agent
	attached := func(t agent.PortableTool) attachment { return attachment{e.ids[t.ID], t.AttachedAt} }
	var skills []string
	for _, f := range e.folders {
		if f.Skills {
			skills = append(skills, e.ids[f.ID])
		}
	}
	return lociFields{Version: formatVersion, Full: e.Full, SkillFolders: skills,
		Agents: []lociAgent{{Of: e.ids[a.ID], ID: a.ID, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
			Tools: a.Settings.Tools, Custom: rest.Each(e.custom, attached), Fields: e.agentFields(),
			Depth: a.Depth, LastRun: a.LastRun, Subagents: rest.Each(e.subagents, definitionOf), Thoughts: e.thoughts}},
		Tools: rest.Each(e.custom, func(t agent.PortableTool) lociTool {
			return lociTool{e.ids[t.ID], t.ID, t.Parallel, t.CreatedAt, t.UpdatedAt, t.FormerNames, e.makers(t)}
		})}
}
