package handover

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// routes say where the updates of an agent go.
type routes struct {
	files memoryfile.Manifest // used only if has is true
	has   bool                // the agent has memory files that it can write
	day   string              // the date of the hand-over
}

// forUser returns a context of work for the user with whom a session was, so that what it hands over to memory files is
// that user's. It returns ctx if the session was with nobody, or the agent's users share one memory. ErrNotFound if the
// user is deleted since.
func (s *Store) forUser(ctx context.Context, org db.Org, a agent.Agent, h Handover) (context.Context, error) {
	if h.IdentityID == nil || a.Users(recall.Conversation{}).All() {
		return ctx, nil
	}
	user, err := s.Agents.UserKey(ctx, org, *h.IdentityID)
	return db.WithUser(ctx, user), err
}

// routesOf finds out where the updates of an agent's session go. The manifest of the agent's tree says so; the default
// manifest, if the agent has no tree yet but has the tool for one.
func (s *Store) routesOf(ctx context.Context, org db.Org, a agent.Agent, h Handover) (r routes, err error) {
	r.day = time.Now().UTC().Format(time.DateOnly)
	if ctx, err = s.forUser(ctx, org, a, h); errors.Is(err, db.ErrNotFound) {
		return r, nil // no files: what would be written there would be nobody's
	}
	if err != nil {
		return r, err
	}
	t, err := s.Agents.MemoryFiles.OfAgent(ctx, org, a.ID)
	switch {
	case errors.Is(err, db.ErrNotFound):
		r.files, r.has = memoryfile.DefaultManifest(), a.HasTool("memory_files")
		return r, nil
	case err != nil:
		return r, err
	}
	r.has = !t.ReadOnly
	r.files, _, err = s.Agents.MemoryFiles.Manifest(ctx, org, t.ID)
	return r, err
}

func (r routes) manifest() string {
	if !r.has {
		return "(it has none)"
	}
	return r.files.Render()
}

// route returns the updates of a session. The task, open questions, decisions, blockers and the next step go to working
// memory. The rest goes to the file that the manifest names, or to working memory if the agent has no files.
func (r routes) route(s session) (all []Update) {
	for _, part := range s.sections() {
		for _, it := range part.items {
			u := Update{Section: part.name, Text: it.Text, Seqs: it.Seqs, Target: r.target(part.name, it)}
			if it.Name != "" {
				u.Entity = new(it.Name)
			}
			if !strings.HasPrefix(u.Target, memoryfile.Root+"/") {
				u.Text = inWorking(part.name, it)
			}
			all = append(all, u)
		}
	}
	return all
}

func (r routes) target(section string, it item) string {
	switch {
	case section == SectionNext:
		return string(working.Next)
	case section == SectionTask:
		return string(working.Task)
	case section == SectionOpen:
		return string(working.OpenQuestions)
	case section == SectionBlocked:
		return string(working.Blockers)
	case section == SectionDecided || !r.has:
		return string(working.Decisions)
	case section == SectionEntity:
		return r.files.Place(kinds[it.Kind], it.Name)
	case section == SectionLearned:
		return r.files.Place("lessons learned errors", "lessons")
	}
	return r.files.Place("topic", "sessions")
}

// inWorking returns the text of an update in working memory. Some updates have no field of their own; they go to the
// decisions, with a label.
func inWorking(section string, it item) string {
	switch section {
	case SectionDone:
		return "Done: " + it.Text
	case SectionLearned:
		return "Learned: " + it.Text
	case SectionEntity:
		return it.Name + ": " + it.Text
	}
	return it.Text
}
