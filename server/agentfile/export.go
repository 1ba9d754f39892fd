package agentfile

import (
	"context"
	"encoding/json"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// ExportOptions says which parts of an agent to export.
type ExportOptions struct {
	AgentID      string
	Conversation string // messages of this conversation; empty means the default one
	NoMessages   bool
	Full         bool // includes Loci's own lists
}

// export is a running export.
type export struct {
	*Store
	*writer
	ExportOptions
	org          db.Org
	agent        agent.Agent
	relations    agent.Relations
	conversation recall.Conversation
	folders      []files.PortableFolder
	views        []files.PortableView
	files        []files.File
	tools        []letta.Tool // tools that Letta has too, and custom tools
	custom       []agent.PortableTool
	subagents    []agent.SubagentDefinition
	records      agent.Records

	thoughts []string          // ids in the file of messages with texts that are thoughts
	ids      map[string]string // ids in the file, by ids in the database
	counts   map[string]int    // how many ids with each prefix the file has
}

// id returns the id that an object gets in the file: Letta requires a number after the prefix.
func (e *export) id(prefix, id string) string {
	if e.ids[id] == "" {
		e.ids[id] = prefix + "-" + strconv.Itoa(e.counts[prefix])
		e.counts[prefix]++
	}
	return e.ids[id]
}

// notInNames matches characters that Letta does not allow in an agent's name.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9 _-]`)

// writeAgent writes the agent, with its messages one by one.
func (e *export) writeAgent(ctx context.Context) {
	e.object(e.agentEntry())
	var ids []string
	list(e.writer, "messages", func(yield func(messageEntry, error) bool) {
		for m, err := range e.messages(ctx) {
			if err != nil {
				yield(messageEntry{}, err)
				return
			}
			for _, entry := range e.messageEntries(m) {
				ids = append(ids, entry.ID)
				if !yield(entry, nil) {
					return
				}
			}
		}
	})
	e.field("in_context_message_ids", append([]string{}, ids...))
	e.text("}")
}

func (e *export) agentEntry() agentEntry {
	a, state := e.agent, letta.StateOf(e.agent, e.relations, nil)
	entry := agentEntry{ID: e.id("agent", a.ID), Name: notInNames.ReplaceAllString(a.Name, "_"),
		Description: a.Description, Metadata: a.Metadata, AgentType: a.Type, Tags: a.Tags, Timezone: a.Timezone,
		System: a.Instructions(e.Tools.Definitions(a, len(e.folders) > 0)), Model: handle(a.Model),
		Embedding: handle(a.Embedding), LLMConfig: withoutNulls(state.LLMConfig),
		EmbeddingConfig: state.EmbeddingConfig, WindowLimit: a.WindowLimit, ToolRules: a.Settings.ToolRules,
		ResponseFormat: a.Settings.ResponseFormat, Autoclear: state.MessageBufferAutoclear, Sleeptime: state.EnableSleeptime,
		MaxFilesOpen: a.MaxFilesOpen, ViewChars: a.ViewChars, Hidden: a.Hidden,
		ToolIDs:      rest.Each(e.tools, func(t letta.Tool) string { return e.id("tool", t.ID) }),
		SourceIDs:    rest.Each(e.folders, func(f files.PortableFolder) string { return e.id("source", f.ID) }),
		BlockIDs:     rest.Each(e.relations.Blocks, func(b block.Block) string { return e.id("block", b.ID) }),
		MemoryBlocks: []any{}, Tools: []any{}, FilesAgents: rest.Each(e.views, e.viewEntry), GroupIDs: []string{}}
	if entry.AgentType == "voice_convo_agent" { // Letta refuses this type without it
		entry.Sleeptime = new(true)
	}
	return entry
}

// handle returns the handle of a model if it has the form provider/model, which Letta requires; otherwise nil.
func handle(model *string) *string {
	if model == nil || strings.HasPrefix(*model, "/") || strings.HasSuffix(*model, "/") || !strings.Contains(*model, "/") {
		return nil
	}
	return model
}

// withoutNulls returns a value's fields without the null ones: Letta has defaults for them and refuses null.
func withoutNulls(v any) map[string]any {
	raw, _ := encode(v) // plain values can be marshaled
	fields := map[string]any{}
	_ = json.Unmarshal(raw, &fields)
	for name, value := range fields {
		if value == nil {
			delete(fields, name)
		}
	}
	return fields
}

// messages yields the part of the conversation that the model sees, with whole results: the system prompt, the summary,
// the kept messages, and all messages from the first visible one on. It yields nothing in an export without messages,
// or in a full one, which has all messages elsewhere.
func (e *export) messages(ctx context.Context) iter.Seq2[recall.Message, error] {
	c := e.conversation
	return func(yield func(recall.Message, error) bool) {
		if e.NoMessages || e.Full {
			return
		}
		first := append([]int{c.Prompts[len(c.Prompts)-1]}, orNone(c.SummaryAt)...)
		for _, position := range append(first, c.Kept...) {
			for m, err := range e.Agents.Recall.Export(ctx, e.org, c.Key, position) {
				if err == nil && m.Refused != nil {
					break
				}
				if !yield(m, err) {
					return
				}
				break
			}
		}
		called := map[string]string{}
		for m, err := range e.Agents.Recall.Export(ctx, e.org, c.Key, c.FirstVisible) {
			if err == nil && (slices.Contains(c.Prompts, m.Position) || m.Role == recall.Summary || m.IsErr ||
				m.Refused != nil || m.Purpose != "" || !paired(&m, called)) {
				continue
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

func orNone(position *int) []int {
	if position == nil {
		return nil
	}
	return []int{*position}
}

// paired removes from a message the results of tools that lack their call before them, because no model sees those. It
// reports whether the message still has content, or never held results. called maps the calls so far to their tools.
func paired(m *recall.Message, called map[string]string) bool {
	var parts []recall.Part
	for _, p := range m.Content {
		if p.Type == recall.ToolCall {
			called[p.CallID] = p.Name
		}
		if _, has := called[p.CallID]; p.Type != recall.ToolReturn || has && !p.Orphan {
			parts = append(parts, p)
		}
	}
	m.Content, m.ToolNames = parts, called
	return len(parts) > 0 || m.Role != recall.Tool
}

// messageEntries returns the entry of a message. If the message has results for calls that the client answered, an
// entry with those answers comes first.
func (e *export) messageEntries(m recall.Message) (all []messageEntry) {
	if a := letta.ApprovalsOf(m); len(a.Approvals) > 0 {
		all = append(all, messageEntry{Type: "message", ID: e.id("message", m.ID+" approval"), Role: approvalRole,
			Content: []letta.ContentPart{}, GroupID: m.GroupID, AgentID: e.ids[m.AgentID], CreatedAt: m.CreatedAt,
			Approve: a.Approve, DenialReason: a.Reason, Approvals: e.approvals(m)})
	}
	return append(all, e.messageEntry(m))
}

// approvals returns the client's answers to the calls that a message has results for.
func (e *export) approvals(m recall.Message) (all []any) {
	for _, p := range m.Content {
		if p.Approval == recall.Returned {
			all = append(all, e.returnEntry(p, m.CreatedAt))
		} else if a := letta.ApprovalOf(p); a != nil {
			all = append(all, *a)
		}
	}
	return all
}

// returnEntry returns a result of a message that was said at a time.
func (e *export) returnEntry(p recall.Part, at time.Time) returnEntry {
	entry := returnEntry{ToolCallID: p.CallID, Status: letta.StatusOf(p), Stdout: p.Stdout, Stderr: p.Stderr}
	if len(p.Images) > 0 {
		entry.Response = letta.ContentOf(p.Returned())
		return entry
	}
	envelope := recall.Envelope{Time: at.In(e.agent.Zone()).Format(recall.EnvelopeTime)}
	if p.Envelope != nil {
		envelope = *p.Envelope
	}
	entry.Response = envelope.Wrap(p.Text, p.IsError)
	return entry
}

func (e *export) messageEntry(m recall.Message) messageEntry {
	internal := letta.InternalMessageOf(m)
	entry := messageEntry{Type: "message", ID: e.id("message", m.ID), Role: internal.Role, Content: internal.Content,
		Name: internal.Name,
		OTID: internal.OTID, SenderID: internal.SenderID, GroupID: internal.GroupID, Model: internal.Model,
		AgentID: e.ids[m.AgentID], ToolCalls: internal.ToolCalls, ToolCallID: internal.ToolCallID,
		CreatedAt: m.CreatedAt}
	if m.Role == recall.Tool {
		entry.Content = nil
		if name := m.ToolNames[m.Content[0].CallID]; entry.Name == nil && name != "" { // Letta lists results with it
			entry.Name = &name
		}
		for _, p := range m.Content {
			r := e.returnEntry(p, m.CreatedAt)
			if text, ok := r.Response.(string); ok {
				entry.Content = append(entry.Content, letta.ContentPart{Type: "text", Text: &text})
			} else {
				entry.Content = append(entry.Content, letta.ContentOf(p.Returned())...)
			}
			entry.ToolReturns = append(entry.ToolReturns, r)
		}
	}
	if slices.ContainsFunc(m.Content, func(p recall.Part) bool { return p.Kind == recall.InnerThought }) {
		e.thoughts = append(e.thoughts, entry.ID)
	}
	if m.Role == recall.Summary { // Letta stores a summary as a message of the user
		entry.Role = string(recall.User)
	}
	return entry
}

func (e *export) viewEntry(v files.PortableView) viewEntry {
	entry := viewEntry{ID: e.id("file_agent", "file_agent "+v.FileID), AgentID: e.ids[v.AgentID],
		FileID: e.id("file", v.FileID), IsOpen: v.IsOpen, LastAccessedAt: v.UsedAt}
	if i := slices.IndexFunc(e.files, func(f files.File) bool { return f.ID == v.FileID }); i >= 0 {
		entry.SourceID, entry.FileName = e.id("source", e.files[i].FolderID), e.files[i].Name
	}
	return entry
}

func (e *export) blockEntry(b block.Block) blockEntry {
	return blockEntry{ID: e.ids[b.ID], Label: b.Label, Value: b.Value, Limit: b.Limit, Description: b.Description,
		ReadOnly: b.ReadOnly, Hidden: b.Hidden, Metadata: b.Metadata, IsTemplate: b.Template.IsTemplate,
		TemplateName: b.Template.Name}
}

func (e *export) sourceEntry(f files.PortableFolder) sourceEntry {
	return sourceEntry{ID: e.ids[f.ID], Name: f.Name, Description: f.Description, Instructions: f.Instructions,
		Metadata: f.Metadata, EmbeddingConfig: e.Agents.Files.Embedding(f.ChunkTokens)}
}

// fileEntry returns a file. It includes the text, unless the export is full and has the file's original.
func (e *export) fileEntry(ctx context.Context, f files.File) (fileEntry, error) {
	if !e.Full {
		var err error
		if f, err = e.Agents.Files.File(ctx, e.org, f.FolderID, f.ID, true); err != nil {
			return fileEntry{}, err
		}
	}
	return fileEntry{ID: e.id("file", f.ID), SourceID: e.ids[f.FolderID], Name: f.Name, OriginalName: f.OriginalName,
		MediaType: f.MediaType, SizeBytes: f.SizeBytes, Status: string(f.Status), ErrorMessage: f.ErrorMessage,
		TotalChunks: f.TotalChunks, ChunksEmbedded: f.ChunksEmbedded, Content: f.Content}, nil
}

func (e *export) toolEntry(t letta.Tool) toolEntry {
	return toolEntry{ID: e.ids[t.ID], ToolType: t.ToolType, Description: t.Description, SourceType: t.SourceType,
		Name: t.Name, Tags: t.Tags, SourceCode: t.SourceCode, JSONSchema: t.JSONSchema, ArgsJSONSchema: t.ArgsJSONSchema,
		ReturnCharLimit: t.ReturnCharLimit, PipRequirements: t.PipRequirements, NPMRequirements: t.NPMRequirements,
		DefaultRequiresApproval: t.DefaultRequiresApproval, Metadata: t.Metadata}
}

// leftOut says in sentences which parts of the agent are not in the file.
func (e *export) leftOut() string {
	sentences := []string{"Runs, steps and the log of prompts are left out."}
	if e.Full {
		return strings.Join(append(sentences, leftOut(e.records)...), " ")
	}
	if e.NoMessages {
		sentences = append(sentences, "Messages are left out.")
	}
	return strings.Join(append(sentences,
		"Identities, passages, other conversations, messages that the model does not see, "+
			"versions of blocks and the originals of files are left out; an export with full=true has them."), " ")
}
