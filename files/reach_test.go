package files_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// user returns the key of a new identity.
func (fx *fixture) user(name string) int64 {
	fx.t.Helper()
	key, err := db.One[int64](fx.t.Context(), fx.pool, `
		INSERT INTO identities (org, identifier_key, name, identity_type, properties) VALUES ($1, $2, $2, 'user', '[]')
		RETURNING key`, fx.org, name)
	if err != nil {
		fx.t.Fatal(err)
	}
	return key
}

// shown returns the names of the files that are open within a reach, least recently used first.
func (fx *fixture) shown(r files.Reach) (names []string) {
	fx.t.Helper()
	views, err := fx.Views(fx.t.Context(), fx.org, r, wide)
	if err != nil {
		fx.t.Fatal(err)
	}
	for _, v := range views {
		names = append(names, v.FileName)
	}
	return names
}

// One agent works with the folder of everybody, and in the conversations with a user also with that user's folder.
// What it opens there, no other user sees, and it closes no other user's files.
func TestEachUserHasFoldersAndOpenFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	shared, agent := fx.fileSet(4)
	reaches := map[string]files.Reach{"": {AgentID: agent, Users: db.OfUser(0)}}
	for _, name := range []string{"ann", "bob"} {
		key := fx.user(name)
		own := fx.newFolder(files.NewFolder{Name: "of " + name, Owner: key})
		fx.upload(own, "own.txt", "the secret of "+name+"\n")
		if err := fx.attach(agent, own.ID, files.Limits{MaxOpen: 3, OpensNone: true}); err != nil {
			t.Fatal(err)
		}
		reaches[name] = files.Reach{AgentID: agent, Users: db.OfUser(key)}
	}
	three := files.Limits{MaxOpen: 3, ViewChars: 1000}
	open := func(who string, names ...string) files.Opening {
		t.Helper()
		got, err := fx.Open(t.Context(), fx.org, reaches[who], files.OpenArgs{Limits: three, Requests: requests(names...)})
		if err != nil {
			t.Fatalf("open %v for %q: %v", names, who, err)
		}
		return got
	}
	open("", "set/0.txt", "set/1.txt")
	if diff := cmp.Diff([]string{"set/0.txt", "set/1.txt"}, fx.shown(reaches["bob"])); diff != "" {
		t.Errorf("bob begins with what is open for nobody (-want +got):\n%s", diff)
	}
	got := open("ann", "of ann/own.txt", "set/2.txt")
	if diff := cmp.Diff([]string{"set/0.txt"}, got.ClosedToLimit); diff != "" {
		t.Errorf("closed for ann (-want +got):\n%s", diff)
	}
	open("bob", "own.txt") // a name that only one of the files within the reach has
	for who, want := range map[string][]string{"": {"set/0.txt", "set/1.txt"},
		"ann": {"set/1.txt", "of ann/own.txt", "set/2.txt"}, "bob": {"set/0.txt", "set/1.txt", "of bob/own.txt"}} {
		if diff := cmp.Diff(want, fx.shown(reaches[who])); diff != "" {
			t.Errorf("open for %q (-want +got):\n%s", who, diff)
		}
	}
	for who, r := range reaches {
		other := map[string]string{"": "ann", "ann": "bob", "bob": "ann"}[who]
		_, err := fx.Open(t.Context(), fx.org, r,
			files.OpenArgs{Limits: three, Requests: requests("of " + other + "/own.txt")})
		if err == nil || strings.Contains(strings.TrimPrefix(err.Error(), "of "+other+"/own.txt"), "of "+other) {
			t.Errorf("%q opens what is %s's, or reads of it: %v", who, other, err)
		}
		grepped, err1 := fx.Grep(t.Context(), fx.org, r, files.GrepQuery{Pattern: "secret"})
		found, err2 := fx.Search(t.Context(), fx.org, r, files.Query{Text: "secret", Limit: 10})
		list, err3 := fx.List(t.Context(), fx.org, r, files.ListQuery{Limit: 50})
		folders, err4 := fx.AgentFolders(t.Context(), fx.org, r, db.Page{})
		directories, err5 := fx.Directories(t.Context(), fx.org, r, wide)
		for _, err := range []error{err1, err2, err3, err4, err5} {
			if err != nil {
				t.Fatal(err)
			}
		}
		own := 0
		if who != "" {
			own = 1
		}
		for what, n := range map[string]int{"matches": len(grepped.Matches), "hits": len(found.Hits),
			"listed": list.Total - 4, "folders": len(folders) - 1, "directories": len(directories) - 1} {
			if n != own {
				t.Errorf("%q sees %d more %s, want %d", who, n, what, own)
			}
		}
		if i := slices.IndexFunc(folders, func(f files.Folder) bool { return f.Name == "of "+other }); i >= 0 {
			t.Errorf("%q sees %s's folder", who, other)
		}
	}
	if _, err := fx.CloseAll(t.Context(), fx.org, reaches["ann"]); err != nil || len(fx.shown(reaches["ann"])) != 0 {
		t.Errorf("after all are closed for ann, %v are open: %v", fx.shown(reaches["ann"]), err)
	}
	if n := len(fx.shown(reaches["bob"])); n != 3 {
		t.Errorf("then %d are open for bob", n)
	}
	closed, err := fx.Trim(t.Context(), fx.org, agent, files.Limits{MaxOpen: 1})
	if diff := cmp.Diff([]string{"set/0.txt", "set/0.txt", "set/1.txt"}, closed); diff != "" || err != nil {
		t.Errorf("trimmed: %v (-want +got):\n%s", err, diff)
	}
	if err := fx.Detach(t.Context(), fx.org, agent, shared.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"of bob/own.txt"}, fx.shown(reaches["bob"])); diff != "" {
		t.Errorf("after the shared folder is detached (-want +got):\n%s", diff)
	}
}
