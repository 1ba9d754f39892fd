// Package agentfile writes agents to files and reads them back, in the format of Letta's agent files (.af): an object
// of agents, blocks, files, sources and tools, with ids that mean something only within the file. A full file also has
// Loci's own lists, with everything that an agent remembers.
//
// Each file uses those that are named before it:
// - what a file holds: lists.go text.go locifields.go filemessage.go entries.go format.go older.go file.go
// - the store: store.go
// - imports of Letta's lists: import.go approvals.go messages.go unknown.go plainlists.go restoreids.go tools.go
// agents.go
// - imports of Loci's lists: stream.go memory.go restorefiles.go restorelog.go restore.go
// - exports: writer.go leftout.go export.go exportlocifields.go exportfull.go
// - messages in Letta's format, without a file: lettamessages.go
// - whole files, in and out: agentfile.go
package agentfile

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// Export writes an agent to a file, as of one moment. ErrNotFound if the agent or the conversation does not exist.
func (s *Store) Export(ctx context.Context, org db.Org, o ExportOptions, out io.Writer) error {
	return s.snapshot(ctx, func(snapshot *Store) error {
		e := &export{Store: snapshot, org: org, ExportOptions: o, writer: newWriter(out), ids: map[string]string{},
			counts: map[string]int{}}
		if err := e.read(ctx); err != nil {
			return err
		}
		e.writeLettas(ctx)
		if o.Full {
			if err := e.writeFull(ctx); err != nil {
				return err
			}
		}
		return e.close()
	})
}

// read reads the parts that are small enough to hold in memory.
func (e *export) read(ctx context.Context) (err error) {
	if e.agent, err = e.Agents.Agent(ctx, e.org, e.AgentID); err != nil {
		return err
	}
	if e.relations, err = e.Agents.Relations(ctx, e.org, e.agent, false); err != nil {
		return err
	}
	if e.conversation, err = e.Agents.Recall.Conversation(ctx, e.org, e.AgentID, e.Conversation); err != nil {
		return err
	}
	// Only a full file names its users, so that another one has nothing of theirs.
	seen := files.Reach{AgentID: e.AgentID}
	if e.Full {
		seen = files.Of(e.AgentID)
	}
	if e.folders, err = e.Agents.Files.ExportFolders(ctx, e.org, seen); err != nil {
		return err
	}
	if e.views, err = e.Agents.Files.ExportViews(ctx, e.org, seen); err != nil {
		return err
	}
	for _, f := range e.folders {
		list, err := e.Agents.Files.Files(ctx, e.org, files.Filter{FolderID: f.ID}, false, db.Page{Ascending: true})
		if err != nil {
			return err
		}
		e.files = append(e.files, list...)
	}
	for _, t := range e.Tools.Of(e.agent, len(e.folders) > 0) {
		if !t.ByClient && slices.Contains(lettasTools, t.Name) {
			e.tools = append(e.tools, letta.ToolOf(t))
		}
	}
	if e.subagents, err = e.Agents.SubagentDefinitions(ctx, e.org, e.AgentID); err != nil {
		return err
	}
	if e.custom, err = e.Agents.ExportTools(ctx, e.org, e.AgentID); err != nil {
		return err
	}
	for _, t := range e.custom {
		e.tools = append(e.tools, letta.CustomToolOf(t.CustomTool))
	}
	e.records, err = e.Agents.Records(ctx, e.org, e.AgentID)
	return err
}

// writeLettas writes the fields of Letta's format, and Loci's small additions.
func (e *export) writeLettas(ctx context.Context) {
	e.name(listAgents)
	e.text("[")
	e.writeAgent(ctx)
	e.text("]")
	e.field(listGroups, []any{})
	e.field(listBlocks, rest.Each(e.relations.Blocks, e.blockEntry))
	list(e.writer, listFiles, func(yield func(fileEntry, error) bool) {
		for _, f := range e.files {
			entry, err := e.fileEntry(ctx, f)
			if !yield(entry, err) || err != nil {
				return
			}
		}
	})
	e.field(listSources, rest.Each(e.folders, e.sourceEntry))
	e.field(listTools, rest.Each(e.tools, e.toolEntry))
	e.field(listServers, []any{})
	e.field(listSkills, []any{})
	e.field(fieldLoci, e.lociFields())
	e.field("metadata", map[string]string{"exported_by": "loci " + e.Version, "left_out": e.leftOut()})
	e.field("created_at", time.Now().UTC())
}

// Import creates all agents of a file, or none. ErrInvalid or a *rest.Problem, with the place in the file, if the file
// is no agent file or breaks a rule.
func (s *Store) Import(ctx context.Context, org db.Org, file *rest.Spool, o ImportOptions) (Imported, error) {
	f, err := open(file)
	if err != nil {
		return Imported{}, err
	}
	s.Agents.DefaultModel(ctx) // asks the endpoint before the transaction, if nobody has
	var imported Imported
	for _, mapped := range []bool{false, true} {
		err = db.Tx(ctx, s.Agents.DB, func(tx pgx.Tx) error {
			i := &imports{Store: s.with(tx), tx: tx, org: org, ImportOptions: o, file: f,
				ids: ids{mapped: mapped, space: uuid.New()}}
			imported, err = i.run(ctx)
			return err
		})
		if !f.own.Full || !isTaken(err) {
			break
		}
	}
	if isTaken(err) {
		err = db.Invalid("the file has two objects with one id, or name, where there can be one (%s)", db.Constraint(err))
	}
	return imported, err
}

func (i *imports) run(ctx context.Context) (Imported, error) {
	i.made, i.file.warnings = Imported{AgentIDs: []string{}, LeftOut: []string{}}, nil
	i.blocks, i.folders, i.files = map[string]string{}, map[string]string{}, map[string]storedFile{}
	steps := []func(context.Context) error{i.checkOptions, i.noteUnserved, i.readTools}
	if i.file.own.Full {
		steps = append(steps, i.restore)
	} else {
		steps = append(steps, i.createBlocks, i.createFolders, i.createFiles, i.createAgents)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return Imported{}, err
		}
	}
	i.made.LeftOut = append(append(i.made.LeftOut, i.file.unknown...), i.file.warnings...)
	return i.made, db.CheckQuotaLast(ctx, i.tx, i.org, db.QuotaAgents, int64(len(i.made.AgentIDs)))
}

func (i *imports) checkOptions(context.Context) error {
	if n := i.file.lists[listAgents].Len; i.Name != "" && n > 1 {
		return db.Invalid("name: the file has %d agents; leave the name out, and rename them afterwards", n)
	}
	if i.NoMessages && i.file.own.Full {
		return db.Invalid("strip_messages: a full file is imported whole; export the agent without full=true")
	}
	return nil
}
