package archival_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/embedtest"
)

// servers returns two stores on one database, as two servers would have them.
func (f *denseFixture) servers() [2]*archival.Store {
	return [2]*archival.Store{f.store, archival.New(f.pool, archival.Options{Endpoint: f.endpoint})}
}

// If two servers insert one text many times at once, one passage is stored. One insert reports it as new, and it is
// embedded once.
func TestDuplicatesInsertedAtOnceLeaveOnePassage(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 8))
	servers := f.servers()
	var group errgroup.Group
	group.SetLimit(16)
	var fresh atomic.Int32
	for i := range scale.Of(150, 1000) {
		group.Go(func() error {
			got, err := servers[i%2].InsertFor(
				t.Context(),
				f.org,
				archival.Of(f.agent),
				[]archival.Draft{{Text: "b"}, {Text: "a"}, {Text: "b"}}[i%3:],
			)
			for _, p := range got {
				if !p.Duplicate {
					fresh.Add(1)
				}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	n, err := f.store.CountPassages(t.Context(), f.org, archival.Of(f.agent))
	if err != nil || n != 2 || fresh.Load() != 2 {
		t.Errorf("%d passages, %v, %d told as new, want 2", n, err, fresh.Load())
	}
	list, err := f.store.Archives(t.Context(), f.org, archival.Of(""), "", db.Page{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d archives, %v, want 1", len(list), err)
	}
	f.embedded(list[0].ID)
	f.settled(0)
}

// If two servers insert batches with common texts, each text is stored once and no request deadlocks.
func TestBatchesAtOnce(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 8))
	servers, c := f.servers(), f.archive("shared")
	size := scale.Of(150, 1000) // of a batch; each begins a tenth of size after the one before
	var group errgroup.Group
	for i := range 8 {
		group.Go(func() error {
			drafts := make([]archival.Draft, size)
			for n := range drafts {
				drafts[n].Text = fmt.Sprintf("fact %d", n+size/10*i)
			}
			if i%2 == 0 {
				slices.Reverse(drafts)
			}
			got, err := servers[i%2].Insert(t.Context(), f.org, c.ID, drafts)
			for n, p := range got {
				if p.Text != drafts[n].Text {
					return fmt.Errorf("passages[%d] is %q, want %q", n, p.Text, drafts[n].Text)
				}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if n, want := f.rows("passages"), size+7*(size/10); n != want {
		t.Errorf("%d passages, want %d", n, want)
	}
	f.embedded(c.ID)
	f.settled(0)
}

// Archives are attached, detached, deleted and filled at the same time. Afterwards each agent with archives has exactly
// one default, each change has an event, and every inserted passage is there.
func TestArchivesAreAttachedAndDetachedAtOnce(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 8))
	servers := f.servers()
	agents := []string{f.agent, f.newAgent("Bob"), f.newAgent("Eve")}
	var archives []archival.Archive
	for i := range 4 {
		archives = append(archives, f.archive(fmt.Sprint("archive ", i)))
	}
	var group errgroup.Group
	group.SetLimit(16)
	var inserted atomic.Int32
	for i := range 192 {
		agent, c, s := agents[i%3], archives[i/3%4], servers[i/12%2]
		group.Go(func() error {
			var err error
			switch i / 24 % 4 {
			case 0, 1:
				err = s.Attach(t.Context(), f.org, agent, c.ID)
			case 2:
				err = s.Detach(t.Context(), f.org, agent, c.ID)
			case 3:
				var got []archival.Inserted
				got, err = s.InsertFor(t.Context(), f.org, archival.Of(agent), []archival.Draft{{Text: fmt.Sprint("note ", i)}})
				// The last archive is deleted meanwhile, and may be cleared away.
				if err == nil && got[0].ArchiveID != archives[3].ID {
					inserted.Add(1)
				}
			}
			if i == 100 {
				err = s.DeleteArchive(t.Context(), f.org, archives[3].ID)
			}
			// The archive is gone after its deletion, and an insertion may meet it as the agent's default.
			if errors.Is(err, db.ErrNotFound) && (c.ID == archives[3].ID || strings.Contains(err.Error(), archives[3].ID)) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, agent := range agents {
		attached := f.count(`SELECT count(*) FROM agent_archives WHERE agent_id = $1`, agent)
		defaults := f.count(`SELECT count(*) FROM agent_archives WHERE agent_id = $1 AND is_default`, agent)
		if defaults != min(attached, 1) {
			t.Errorf("of %d archives of an agent %d are its default", attached, defaults)
		}
		if n := f.count(`
			SELECT count(*) FILTER (WHERE type = 'archive_attached') - count(*) FILTER (WHERE type = 'archive_detached')
			FROM events WHERE agent_id = $1`,
			agent); n != attached {
			t.Errorf("the events of an agent say that %d archives are attached to it, and %d are", n, attached)
		}
	}
	if n := f.count(`
		SELECT count(*) FROM agent_archives a JOIN archives c ON c.key = a.archive_key
		WHERE a.org = $1 AND c.deleted_at IS NOT NULL`, f.org); n != 0 {
		t.Errorf("a deleted archive is attached %d times", n)
	}
	if n := f.count(`
		SELECT count(*) FROM passages p JOIN archives c ON c.org = p.org AND c.key = p.archive_key
		WHERE p.org = $1 AND c.deleted_at IS NULL`, f.org); n != int(inserted.Load()) {
		t.Errorf("%d passages of %d that were inserted", n, inserted.Load())
	}
}
