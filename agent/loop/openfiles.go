package loop

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/loci-memory/loci/db/event"
)

// refuseFiles leaves the texts of open files out of the prompts of this run and of later runs.
func (w *worker) refuseFiles(ctx context.Context) error {
	w.withoutFiles = true
	now, err := w.openFiles(ctx)
	if err == nil {
		w.refusedFiles.put(w.agentModel(), now)
	}
	return err
}

// leaveFilesOut leaves the texts of open files out of the next prompt if the provider refused them before, and no file
// was changed, opened or closed since.
func (w *worker) leaveFilesOut(ctx context.Context) error {
	w.withoutFiles = false
	refused, known := w.refusedFiles.get(w.agentModel())
	if !known {
		return nil
	}
	current, err := w.openFiles(ctx)
	if err != nil {
		return err
	}
	changes, err := event.List(ctx, w.DB, w.org, w.agent.ID, event.Query{After: refused.seq, Limit: 1,
		Types: []event.Type{event.FileOpened, event.FileClosed}})
	switch {
	case err != nil:
		return err
	case len(changes) > 0 || current.texts != refused.texts:
		w.refusedFiles.forget(w.agentModel())
		return nil
	}
	w.withoutFiles = true
	w.refusedFiles.put(w.agentModel(), current)
	return nil
}

func (w *worker) agentModel() agentModel { return agentModel{w.agent.ID, w.handle()} }

// openFiles reads which files the agent has open.
func (w *worker) openFiles(ctx context.Context) (open openFiles, err error) {
	if open.seq, err = event.Head(ctx, w.DB, w.org, w.agent.ID); err != nil {
		return open, err
	}
	directories, err := w.Agents.Files.Directories(ctx, w.org, w.agent.Folders(w.conversation), w.agent.Limits())
	sum := sha256.New()
	for _, d := range directories {
		for _, f := range d.Files {
			if f.IsOpen {
				fmt.Fprintf(sum, "%s %d %s", f.FileID, len(f.Text), f.Text)
			}
		}
	}
	sum.Sum(open.texts[:0])
	return open, err
}
