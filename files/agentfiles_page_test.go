package files_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// item is a file in any list.
type item struct{ id, name string }

// While others add files to a list and delete some, a caller who pages through it sees each file that stays once:
// forward and backward, oldest or newest first. That holds too if the file before the next page is deleted.
func TestPagesAreStableWhileOthersWrite(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	agent := fx.agentWith(folder)
	lists := map[string]func(db.Page) ([]item, error){
		"the folder's files": func(p db.Page) (list []item, err error) {
			found, err := fx.Files(t.Context(), fx.org, files.Filter{FolderID: folder.ID}, false, p)
			for _, f := range found {
				list = append(list, item{f.ID, f.Name})
			}
			return list, err
		},
		"the agent's files": func(p db.Page) (list []item, err error) {
			found, _, err := fx.AgentFiles(t.Context(), fx.org, agent, files.AgentFilesQuery{Limits: wide, Page: p})
			for _, f := range found {
				list = append(list, item{f.ID, strings.TrimPrefix(f.FileName, "f/")})
			}
			return list, err
		},
	}
	for what, list := range lists {
		for _, p := range []db.Page{{Ascending: true}, {}} {
			for _, backward := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, ascending %v, backward %v", what, p.Ascending, backward), func(t *testing.T) {
					want := fx.mixed(folder, p.Ascending)
					stop := fx.churn(folder)
					got := fx.turn(folder, list, fx.from(folder, p, backward, want), backward)
					stop()
					if backward {
						want = want[:len(want)-1]
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// mixed fills the folder with files that stay and files that go. It returns the names of those that stay, in the order
// of the list.
func (fx *fixture) mixed(folder files.Folder, ascending bool) (stay []string) {
	fx.t.Helper()
	fx.exec(`DELETE FROM files WHERE folder_key = $1`, folder.Key)
	for i := range 30 {
		name := fmt.Sprint("goes ", i)
		if i%3 == 0 {
			name = fmt.Sprint("stays ", i)
			stay = append(stay, name)
		}
		fx.row(folder, name)
	}
	if !ascending {
		slices.Reverse(stay)
	}
	return stay
}

// row adds files without text.
func (fx *fixture) row(folder files.Folder, names ...string) {
	_, err := fx.pool.Exec(fx.t.Context(), `
		INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256)
		SELECT $1, $2, name, name, 'text/plain', 0, '' FROM unnest($3::text[]) AS name
		ON CONFLICT DO NOTHING`, fx.org, folder.Key, names)
	if err != nil {
		fx.t.Error(err)
	}
}

// churn adds and deletes files that do not stay, until stop is called or 40 rounds are done.
func (fx *fixture) churn(folder files.Folder) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 40 { // without a limit, a pager would never reach the end
			select {
			case <-end:
				return
			default:
			}
			fx.row(folder, fmt.Sprint("goes late ", i))
			if _, err := db.Delete(fx.t.Context(), fx.pool, "files", `r.key = (
				SELECT key FROM files WHERE org = $1 AND folder_key = $2 AND name LIKE 'goes%' ORDER BY random() LIMIT 1)`,
				fx.org, folder.Key); err != nil {
				fx.t.Error(err)
			}
		}
	}()
	return func() { close(end); <-ended }
}

// from returns the page that turn starts with: the first, or the page before the last file that stays.
func (fx *fixture) from(folder files.Folder, p db.Page, backward bool, stay []string) db.Page {
	fx.t.Helper()
	if !backward {
		return p
	}
	err := fx.pool.QueryRow(fx.t.Context(), `SELECT id FROM files WHERE folder_key = $1 AND name = $2`, folder.Key,
		stay[len(stay)-1]).Scan(&p.Before)
	if err != nil {
		fx.t.Fatal(err)
	}
	return p
}

// turn pages through a list to its end, in pages of random sizes. It returns the names that stay, in the order of one
// page. It deletes the file that the next page starts after, unless that file stays.
func (fx *fixture) turn(folder files.Folder, list func(db.Page) ([]item, error), p db.Page,
	backward bool) (names []string) {
	fx.t.Helper()
	for {
		p.Limit = 1 + rand.IntN(9)
		page, err := list(p)
		if err != nil {
			fx.t.Fatal(err)
		}
		if len(page) == 0 {
			return names
		}
		var stay []string
		for _, f := range page {
			if strings.HasPrefix(f.name, "stays") {
				stay = append(stay, f.name)
			}
		}
		cursor := page[len(page)-1]
		if backward {
			cursor, names = page[0], append(stay, names...)
			p.Before = cursor.id
		} else {
			names = append(names, stay...)
			p.After = cursor.id
		}
		if strings.HasPrefix(cursor.name, "goes") {
			id := strings.Replace(cursor.id, "file_agent-", "file-", 1)
			if err := fx.DeleteFile(fx.t.Context(), fx.org, folder.ID, id); err != nil && !errors.Is(err, db.ErrNotFound) {
				fx.t.Fatal(err)
			}
		}
	}
}

// An id that never existed, that belongs to another organization or that was forgotten gives an empty page.
func TestACursorThatNeverWas(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	for i := range 3 {
		fx.row(folder, fmt.Sprint(i))
	}
	list, err := fx.Files(t.Context(), fx.org, files.Filter{FolderID: folder.ID}, false, db.Page{Ascending: true})
	if err != nil || len(list) != 3 {
		t.Fatalf("got %v (%v)", list, err)
	}
	if err := fx.DeleteFile(t.Context(), fx.org, folder.ID, list[0].ID); err != nil {
		t.Fatal(err)
	}
	count := func(after string) int {
		t.Helper()
		filter := files.Filter{FolderID: folder.ID}
		got, err := fx.Files(t.Context(), fx.org, filter, false, db.Page{Ascending: true, After: after})
		if err != nil {
			t.Fatal(err)
		}
		return len(got)
	}
	if n := count("file-none"); n != 0 {
		t.Errorf("after a file that never was: %d files", n)
	}
	if n := count(list[0].ID); n != 2 {
		t.Errorf("after a deleted file: %d files, want 2", n)
	}
	if n, err := db.ForgetDeleted(t.Context(), fx.pool); n != 0 || err != nil {
		t.Errorf("forgotten at once: %d (%v)", n, err)
	}
	if _, err := fx.pool.Exec(t.Context(),
		`UPDATE deleted_places SET deleted_at = now() - interval '25 hours' WHERE org = $1`, fx.org); err != nil {
		t.Fatal(err)
	}
	if n, err := db.ForgetDeleted(t.Context(), fx.pool); n != 1 || err != nil {
		t.Errorf("forgotten after a day: %d (%v)", n, err)
	}
	if n := count(list[0].ID); n != 0 {
		t.Errorf("after a forgotten file: %d files", n)
	}
}
