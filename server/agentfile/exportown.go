package agentfile

import (
	"encoding/json"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

func (e *export) ownFields() ownFields {
	a, s := e.agent, e.agent.Settings
	own := ownFields{Settings: s.ModelSettings, Compaction: s.CompactionSettings, RecallScope: s.RecallScope,
		Working: s.WorkingMemory, OpenOnAttach: s.OpenOnAttach}
	if s.Flush != nil {
		own.Flush, _ = json.Marshal(s.Flush) // plain values
	}
	if s.Handover != nil {
		own.Handover, _ = json.Marshal(s.Handover) // plain values
	}
	if notInNames.MatchString(a.Name) {
		own.Name = a.Name
	}
	if e.Full {
		own.System, own.Model, own.Embedding = &a.System, a.Model, a.Embedding
		own.Autoclear, own.Sleeptime = s.MessageBufferAutoclear, s.EnableSleeptime
	}
	return own
}

// makers are those of a custom tool in a full file; another one tells nobody of whom the server has.
func (e *export) makers(t agent.PortableTool) db.Makers {
	if e.Full {
		return t.Makers
	}
	return db.Makers{}
}

func (e *export) own() own {
	a := e.agent
	attached := func(t agent.PortableTool) attachment { return attachment{e.ids[t.ID], t.AttachedAt} }
	return own{Version: formatVersion, Full: e.Full,
		Agents: []ownAgent{{Of: e.ids[a.ID], ID: a.ID, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
			Tools: a.Settings.Tools, Custom: rest.Each(e.custom, attached), Fields: e.ownFields(),
			Depth: a.Depth, LastRun: a.LastRun}},
		Tools: rest.Each(e.custom, func(t agent.PortableTool) ownTool {
			return ownTool{e.ids[t.ID], t.ID, t.Parallel, t.CreatedAt, t.UpdatedAt, t.FormerNames, e.makers(t)}
		})}
}
