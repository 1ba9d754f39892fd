package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// smallFileBytes is about the size of a file of source code.
const smallFileBytes = 10 << 10

// smallFiles measures how long many small files take that are uploaded together, with vectors: until words find them,
// and until the index of the vectors is built; and COPY of the same rows.
func (b *bench) smallFiles(ctx context.Context) error {
	home, dir := filepath.Join(b.work, "home"), filepath.Join(b.work, "small")
	defer os.RemoveAll(home)
	defer os.RemoveAll(dir)
	documents, err := b.corpus.smallSources(dir, b.SmallFiles)
	if err != nil {
		return err
	}
	endpoint := newEmbedder()
	defer endpoint.Close()
	s, _, err := b.serve(ctx, home, "LOCI_EMBEDDING_BASE_URL="+endpoint.URL+"/v1", "LOCI_EMBEDDING_MODEL=fake")
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d files of 10 KB", len(documents))
	row := Row{What: "ingestion of " + what + ", words and vectors", Unit: "MB/s", AtLeast: 0.5,
		Versus: fmt.Sprintf("COPY of the same rows, %d connections", copiers)}
	in := &ingestion{bench: b, instance: s, documents: documents, vectors: true}
	if err := errors.Join(in.measure(ctx, &row), b.filteredFiles(ctx, in), s.stop()); err != nil {
		return err
	}
	words := Row{What: what + ": until words find all", Unit: "s", AtMost: 50}
	indexed := Row{What: what + ": until all vectors are indexed", Unit: "s", AtMost: 180}
	words.Loci.Raw = []float64{in.took.words.Seconds()}
	indexed.Loci.Raw = []float64{in.took.indexed.Seconds()}
	for _, r := range []*Row{&row, &words, &indexed} {
		r.settle(median)
	}
	b.report.add(row, words)
	if in.took.indexed == 0 {
		b.report.skip(fmt.Sprintf("%d chunks are too few for an index", in.chunks), indexed)
		return nil
	}
	b.report.add(indexed)
	return nil
}

// filteredFiles measures searches of some of the files.
func (b *bench) filteredFiles(ctx context.Context, in *ingestion) error {
	queries, err := wordsOf(in.documents, b.Queries)
	if err != nil {
		return err
	}
	return b.filtered(ctx, in.instance, filteredSearch{
		what:    fmt.Sprintf("search of %d files, words and vectors", len(in.documents)),
		queries: queries,
		once: func(ctx context.Context, arguments map[string]any) error {
			_, err := in.instance.tool(ctx, in.agent, "semantic_search_files", arguments)
			return err
		},
		filters: fileFilters(),
	})
}

// wordsOf returns n queries of a few words, each of one document.
func wordsOf(documents []Document, n int) (queries []string, err error) {
	r := rand.New(rand.NewPCG(42, 4)) //nolint:gosec // the same queries each time
	for range n {
		text, err := os.ReadFile(documents[r.IntN(len(documents))].Path)
		if err != nil {
			return nil, err
		}
		words := strings.FieldsFunc(string(text), func(c rune) bool { return !unicode.IsLetter(c) })
		query := make([]string, 3+r.IntN(4))
		for i := range query {
			query[i] = words[r.IntN(len(words))]
		}
		queries = append(queries, strings.Join(query, " "))
	}
	return queries, nil
}

// smallSources writes n files of source code to a new directory.
func (c *corpus) smallSources(dir string, n int) ([]Document, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	w := &writer{corpus: c, r: rand.New(rand.NewPCG(41, 4))} //nolint:gosec // the same files each time
	list := make([]Document, n)
	for i := range list {
		text, err := w.sources(smallFileBytes)
		if err != nil {
			return nil, err
		}
		text = append(text, fmt.Sprintf("// %d of %d\n", i, n)...) // no two files are the same
		list[i] = Document{Path: filepath.Join(dir, fmt.Sprintf("%06d.go", i)), Bytes: int64(len(text))}
		if err := os.WriteFile(list[i].Path, text, 0o644); err != nil {
			return nil, err
		}
	}
	return list, nil
}
