package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// askers are the clients that ask at a time.
const askers = 3

// firstHits is how many hits are looked at.
const firstHits = 10

// findsInFiles uploads the folders of the sets to a server, asks each question by an agent that has the set's folders,
// and prints how often one of the first hits is the right place. An error names the sets that are below their range. It
// writes what is missed to a file, unless that is empty.
func (b *bench) findsInFiles(ctx context.Context, misses string) error {
	sets, err := fileSets(ctx)
	if err != nil {
		return err
	}
	s, _, err := b.serve(ctx, filepath.Join(b.work, "found"))
	if err != nil {
		return err
	}
	found := make([]filesFound, len(sets))
	uploaded := uploads{dir: filepath.Join(b.work, "upload"), folders: map[*folder]string{}}
	for i, set := range sets {
		if set.skipped != "" {
			continue
		}
		if found[i], err = s.askFiles(ctx, uploaded, set); err != nil {
			err = fmt.Errorf("%s: %w", set.name, err)
			break
		}
		say("%s is asked", set.name)
	}
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	fmt.Print(filesTable(sets, found))
	if misses != "" {
		if err := os.WriteFile(misses, []byte(missedText(sets, found)), 0o644); err != nil {
			return err
		}
	}
	return belowRange(sets, found)
}

// uploads are the ids of the folders that were uploaded.
type uploads struct {
	dir     string // for the files
	folders map[*folder]string
}

// filesFound is the rank of each question's answer, from 1, or 0 where it is not among the first hits; and those hits.
type filesFound struct {
	ranks []int
	hits  []string
	right []fileQuestion // the questions with the lines of their answers
}

// within returns the percentage of the questions whose answer is among the first n hits.
func (f filesFound) within(n int) float64 {
	found := 0
	for _, rank := range f.ranks {
		if rank > 0 && rank <= n {
			found++
		}
	}
	return 100 * float64(found) / float64(max(len(f.ranks), 1))
}

// askFiles uploads the folders of a set that are not uploaded, and asks its questions.
func (s *instance) askFiles(ctx context.Context, up uploads, set fileSet) (found filesFound, err error) {
	var agent named
	if err := s.call(ctx, http.MethodPost, "/v1/agents/", map[string]string{"name": set.name}, &agent); err != nil {
		return found, err
	}
	texts := map[string]string{}
	for _, f := range set.folders {
		if err := s.uploadFolder(ctx, up, f); err != nil {
			return found, err
		}
		id := up.folders[f]
		if err := s.call(ctx, http.MethodPatch, "/v1/agents/"+agent.ID+"/folders/attach/"+id, nil, nil); err != nil {
			return found, err
		}
		if err := s.parsedTexts(ctx, id, texts); err != nil {
			return found, err
		}
	}
	for _, q := range set.questions {
		if q.heading != "" {
			var ok bool
			if q.first, q.last, ok = sectionLines(texts[q.file], q.heading); !ok {
				return found, fmt.Errorf("the text of %s lacks the section of %q", q.file, q.text)
			}
		}
		found.right = append(found.right, q)
	}
	found.ranks, found.hits = make([]int, len(found.right)), make([]string, len(found.right))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askers)
	for i, q := range found.right {
		group.Go(func() error {
			text, err := s.tool(ctx, agent.ID, "semantic_search_files", map[string]any{"query": q.text, "limit": firstHits})
			found.ranks[i], found.hits[i] = 1+slices.IndexFunc(hitsIn(text), q.isAnsweredBy), text
			return err
		})
	}
	return found, group.Wait()
}

// uploadFolder uploads a folder, unless it was, and waits until the server has parsed its files.
func (s *instance) uploadFolder(ctx context.Context, up uploads, f *folder) error {
	if up.folders[f] != "" {
		return nil
	}
	var made named
	if err := s.call(ctx, http.MethodPost, "/v1/folders/", map[string]string{"name": f.name}, &made); err != nil {
		return err
	}
	up.folders[f] = made.ID
	dir := filepath.Join(up.dir, f.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var list []Document
	for _, file := range f.files {
		path := filepath.Join(dir, file.name)
		if err := os.WriteFile(path, []byte(file.text), 0o644); err != nil {
			return err
		}
		list = append(list, Document{path, int64(len(file.text))})
	}
	began := time.Now()
	if err := s.upload(ctx, made.ID, list); err != nil {
		return err
	}
	err := poll(ctx, lookEvery, func() (bool, error) {
		counts, err := s.statuses(ctx, made.ID)
		if err == nil && counts["error"] > 0 {
			err = fmt.Errorf("of %d files, %d cannot be parsed", len(list), counts["error"])
		}
		return counts["completed"] == len(list), err
	})
	say("%s: %d files in %.0f s", f.name, len(list), time.Since(began).Seconds())
	return err
}

// parsedTexts adds the texts of a folder's files, by their names.
func (s *instance) parsedTexts(ctx context.Context, folder string, texts map[string]string) error {
	for after := ""; ; {
		var page []struct {
			ID      string `json:"id"`
			Name    string `json:"file_name"`
			Content string `json:"content"`
		}
		if err := s.call(ctx, http.MethodGet,
			"/v1/folders/"+folder+"/files?include_content=true&limit=50&after="+after, nil, &page); err != nil {
			return err
		}
		for _, f := range page {
			texts[f.Name] = f.Content
			after = f.ID
		}
		if len(page) == 0 {
			return nil
		}
	}
}

// fileHit is a hit of a search of files, by the head of its text.
type fileHit struct {
	file        string
	first, last int
}

var hitHead = regexp.MustCompile(`(?m)^=== [^/\n]+/(.+) \((?:[^()\n]+, )?lines (\d+)-(\d+)\) ===$`)

// hitsIn returns the hits that the tool's text shows, the best first.
func hitsIn(text string) (hits []fileHit) {
	for _, m := range hitHead.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[2]) // of digits
		last, _ := strconv.Atoi(m[3])
		hits = append(hits, fileHit{m[1], first, last})
	}
	return hits
}

// isAnsweredBy reports whether a hit has a line of the answer.
func (q fileQuestion) isAnsweredBy(h fileHit) bool {
	return h.file == q.file && h.first <= q.last && h.last >= q.first
}

// filesTable returns the sets as a table.
func filesTable(sets []fileSet, found []filesFound) string {
	var b strings.Builder
	b.WriteString("| files | n | found@1 | @5 | @10 | range of @10 |\n| --- | --- | --- | --- | --- | --- |\n")
	for i, set := range sets {
		if set.skipped != "" {
			fmt.Fprintf(&b, "| %s | – | – | – | – | %s |\n", set.name, set.skipped)
			continue
		}
		f, note := found[i], ""
		if f.within(firstHits) > set.to {
			note = ": raise it"
		}
		fmt.Fprintf(&b, "| %s | %d | %.1f | %.1f | %.1f | %g to %g%s |\n", set.name, len(f.ranks), f.within(1), f.within(5),
			f.within(firstHits), set.from, set.to, note)
	}
	return b.String()
}

// belowRange returns an error that names the sets that are found less often than their range says.
func belowRange(sets []fileSet, found []filesFound) (err error) {
	for i, set := range sets {
		if got := found[i].within(firstHits); set.skipped == "" && got < set.from {
			err = errors.Join(err, fmt.Errorf("%s: %.1f %% are found in the first %d hits, want at least %g %%", set.name, got,
				firstHits, set.from))
		}
	}
	return err
}

// missedText returns the questions whose answers were not found, with their places and the hits.
func missedText(sets []fileSet, found []filesFound) string {
	var b strings.Builder
	for i, set := range sets {
		for k, rank := range found[i].ranks {
			if rank > 0 {
				continue
			}
			q := found[i].right[k]
			fmt.Fprintf(&b, "##### %s: %s\n##### answered by %s, lines %d-%d\n%s\n\n", set.name, q.text, q.file, q.first, q.last,
				found[i].hits[k])
		}
	}
	return b.String()
}
