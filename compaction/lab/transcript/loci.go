package transcript

import (
	"encoding/json"

	"github.com/loci-memory/loci/recall"
)

// loci reads the conversations of an agent that Loci exported in full. It leaves out summaries, because the messages
// that they replaced are there.
func (d document) loci(o object) (all []Transcript, err error) {
	items, err := d.list(o.fields["loci_messages"])
	if err != nil {
		return nil, d.fail(o.at, "an agent that Loci exported in full has a list loci_messages")
	}
	index := map[string]int{}
	for _, item := range items {
		var m recall.PortableMessage
		if err := json.Unmarshal(item.raw, &m); err != nil {
			return nil, d.fail(item.at, "expected a message of an export: %v", err)
		}
		i, known := index[m.ConversationID]
		if !known {
			i = len(all)
			index[m.ConversationID] = i
			all = append(all, Transcript{Session: m.ConversationID, Format: Loci, LeftOut: map[string]int{}})
		}
		if m.Role == recall.Summary || m.Purpose != "" {
			all[i].LeftOut[string(m.Role)]++
			continue
		}
		draft := recall.Draft{Role: m.Role, Name: m.Name, Content: m.Content, OTID: &m.ID, StepID: m.StepID,
			SenderID: m.SenderID, Model: m.Model, IsErr: m.IsErr, CreatedAt: &m.CreatedAt}
		if m.Role == recall.System && len(all[i].Drafts) == 0 {
			all[i].System = textOf(draft)
			continue
		}
		all[i].Drafts = append(all[i].Drafts, draft)
	}
	return all, nil
}

// agents reads the messages of agents exported by Letta.
func (d document) agents(o object) (all []Transcript, err error) {
	agents, err := d.objects(o.fields["agents"])
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		entries, err := d.objects(a.fields["messages"])
		if err != nil {
			return nil, err
		}
		t, err := d.messages(entries)
		if err != nil {
			return nil, err
		}
		if t.System == "" {
			t.System = a.text("system")
		}
		all = append(all, t)
	}
	return all, nil
}

// OfMessages returns messages from a log as a transcript.
func OfMessages(name string, messages []recall.Message) Transcript {
	t := Transcript{Name: name, Format: Loci}
	for _, m := range messages {
		if m.Role == recall.Summary || m.Purpose != "" {
			continue
		}
		draft := recall.Draft{Role: m.Role, Name: m.Name, Content: m.Content, OTID: &m.ID, StepID: m.StepID,
			SenderID: m.SenderID, Model: m.Model, IsErr: m.IsErr, CreatedAt: &m.CreatedAt}
		if m.Role == recall.System && len(t.Drafts) == 0 {
			t.System = textOf(draft)
			continue
		}
		t.Drafts = append(t.Drafts, draft)
	}
	return t
}
