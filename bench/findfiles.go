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

// askers is how many clients ask at the same time.
const askers = 3

// firstHits is how many hits are checked.
const firstHits = 10

// findsInFiles uploads the folders of all sets to a server, and asks each question with an agent that has the set's
// folders. It prints how often the right place is among the first hits. It returns an error that names the sets below
// their expected range. If misses is not empty, it writes the missed questions to that file.
func (b *bench) findsInFiles(ctx context.Context, misses string) error {
	sets, err := fileSets(ctx)
	if err != nil {
		return err
	}
	s, _, err := b.serve(ctx, filepath.Join(b.work, "found"))
	if err != nil {
		return err
	}
	results := make([]filesFound, len(sets))
	uploaded := uploads{dir: filepath.Join(b.work, "upload"), folders: map[*folder]string{}}
	for i, set := range sets {
		if set.skipped != "" {
			continue
		}
		if results[i], err = s.askFiles(ctx, uploaded, set); err != nil {
			err = fmt.Errorf("%s: %w", set.name, err)
			break
		}
		say("%s is asked", set.name)
	}
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	fmt.Print(filesTable(sets, results))
	if misses != "" {
		if err := os.WriteFile(misses, []byte(missedText(sets, results)), 0o644); err != nil {
			return err
		}
	}
	return belowRange(sets, results)
}

// uploads holds the ids of the uploaded folders.
type uploads struct {
	dir     string // directory for the files
	folders map[*folder]string
}

// filesFound holds, for each question, the rank of the answer (from 1; 0 if not among the first hits), and the hits.
type filesFound struct {
	ranks []int
	hits  []string
	right []fileQuestion // the questions, with the lines of their answers
}

// within returns the percentage of questions with the answer among the first n hits.
func (f filesFound) within(n int) float64 {
	count := 0
	for _, rank := range f.ranks {
		if rank > 0 && rank <= n {
			count++
		}
	}
	return 100 * float64(count) / float64(max(len(f.ranks), 1))
}

// askFiles uploads the folders of a set that are not uploaded yet, and asks the set's questions.
func (s *instance) askFiles(ctx context.Context, uploaded uploads, set fileSet) (result filesFound, err error) {
	var agent named
	if err := s.call(ctx, http.MethodPost, "/v1/agents/", agentNamed(set.name), &agent); err != nil {
		return result, err
	}
	texts := map[string]string{}
	for _, f := range set.folders {
		if err := s.uploadFolder(ctx, uploaded, f); err != nil {
			return result, err
		}
		id := uploaded.folders[f]
		if err := s.call(ctx, http.MethodPatch, "/v1/agents/"+agent.ID+"/folders/attach/"+id, nil, nil); err != nil {
			return result, err
		}
		if err := s.parsedTexts(ctx, id, texts); err != nil {
			return result, err
		}
	}
	for _, q := range set.questions {
		if q.heading != "" {
			var ok bool
			if q.first, q.last, ok = sectionLines(texts[q.file], q.heading); !ok {
				return result, fmt.Errorf("the text of %s lacks the section of %q", q.file, q.text)
			}
		}
		result.right = append(result.right, q)
	}
	result.ranks, result.hits = make([]int, len(result.right)), make([]string, len(result.right))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askers)
	for i, q := range result.right {
		group.Go(func() error {
			text, err := s.tool(ctx, agent.ID, "semantic_search_files", map[string]any{"query": q.text, "limit": firstHits})
			result.ranks[i], result.hits[i] = 1+slices.IndexFunc(hitsIn(text), q.isAnsweredBy), text
			return err
		})
	}
	return result, group.Wait()
}

// uploadFolder uploads a folder, unless that was done before, and waits until the server has parsed its files.
func (s *instance) uploadFolder(ctx context.Context, uploaded uploads, f *folder) error {
	if uploaded.folders[f] != "" {
		return nil
	}
	var created named
	if err := s.call(ctx, http.MethodPost, "/v1/folders/", map[string]string{"name": f.name}, &created); err != nil {
		return err
	}
	uploaded.folders[f] = created.ID
	dir := filepath.Join(uploaded.dir, f.name)
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
	start := time.Now()
	if err := s.upload(ctx, created.ID, list); err != nil {
		return err
	}
	err := poll(ctx, lookEvery, func() (bool, error) {
		counts, err := s.statuses(ctx, created.ID)
		if err == nil && counts["error"] > 0 {
			err = fmt.Errorf("of %d files, %d cannot be parsed", len(list), counts["error"])
		}
		return counts["completed"] == len(list), err
	})
	say("%s: %d files in %.0f s", f.name, len(list), time.Since(start).Seconds())
	return err
}

// parsedTexts adds the texts of a folder's files to texts, by file name.
func (s *instance) parsedTexts(ctx context.Context, folder string, texts map[string]string) error {
	for cursor := ""; ; {
		var page []struct {
			ID      string `json:"id"`
			Name    string `json:"file_name"`
			Content string `json:"content"`
		}
		if err := s.call(ctx, http.MethodGet,
			"/v1/folders/"+folder+"/files?include_content=true&limit=50&after="+cursor, nil, &page); err != nil {
			return err
		}
		for _, f := range page {
			texts[f.Name] = f.Content
			cursor = f.ID
		}
		if len(page) == 0 {
			return nil
		}
	}
}

// fileHit is a hit of a search in files, as the head of its text describes it.
type fileHit struct {
	file        string
	first, last int
}

var hitHead = regexp.MustCompile(`(?m)^=== [^/\n]+/(.+) \((?:[^()\n]+, )?lines (\d+)-(\d+)\) ===$`)

// hitsIn returns the hits in the tool's text, the best first.
func hitsIn(text string) (hits []fileHit) {
	for _, m := range hitHead.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[2]) // the pattern matches digits
		last, _ := strconv.Atoi(m[3])
		hits = append(hits, fileHit{m[1], first, last})
	}
	return hits
}

// isAnsweredBy reports whether a hit contains a line of the answer.
func (q fileQuestion) isAnsweredBy(h fileHit) bool {
	return h.file == q.file && h.first <= q.last && h.last >= q.first
}

// filesTable returns a table of the sets.
func filesTable(sets []fileSet, results []filesFound) string {
	var b strings.Builder
	b.WriteString("| files | n | found@1 | @5 | @10 | range of @10 |\n| --- | --- | --- | --- | --- | --- |\n")
	for i, set := range sets {
		if set.skipped != "" {
			fmt.Fprintf(&b, "| %s | – | – | – | – | %s |\n", set.name, set.skipped)
			continue
		}
		f, note := results[i], ""
		if f.within(firstHits) > set.to {
			note = ": raise it"
		}
		fmt.Fprintf(&b, "| %s | %d | %.1f | %.1f | %.1f | %g to %g%s |\n", set.name, len(f.ranks), f.within(1), f.within(5),
			f.within(firstHits), set.from, set.to, note)
	}
	return b.String()
}

// belowRange returns an error that names the sets below their expected range.
func belowRange(sets []fileSet, results []filesFound) (err error) {
	for i, set := range sets {
		if got := results[i].within(firstHits); set.skipped == "" && got < set.from {
			err = errors.Join(err, fmt.Errorf("%s: %.1f %% are found in the first %d hits, want at least %g %%", set.name, got,
				firstHits, set.from))
		}
	}
	return err
}

// missedText lists the questions with missed answers, with the answers' places and the hits.
func missedText(sets []fileSet, results []filesFound) string {
	var b strings.Builder
	for i, set := range sets {
		for k, rank := range results[i].ranks {
			if rank > 0 {
				continue
			}
			q := results[i].right[k]
			fmt.Fprintf(&b, "##### %s: %s\n##### answered by %s, lines %d-%d\n%s\n\n", set.name, q.text, q.file, q.first, q.last,
				results[i].hits[k])
		}
	}
	return b.String()
}
