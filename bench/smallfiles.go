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

// smallFileBytes is about the size of a source file.
const smallFileBytes = 10 << 10

// smallFiles measures the time for many small files that are uploaded together, with vectors: until searches by words
// find them, until the vector index is built, and the time of a COPY of the same rows.
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
	provider := newProvider()
	defer provider.Close()
	s, _, err := b.serve(ctx, home, "LOCI_EMBEDDING_BASE_URL="+endpoint.URL+"/v1", "LOCI_EMBEDDING_MODEL=fake",
		upstreamsOf(provider))
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d files of 10 KB", len(documents))
	row := Row{What: "ingestion of " + name + ", words and vectors", Unit: "MB/s", AtLeast: 0.5,
		Versus: fmt.Sprintf("COPY of the same rows, %d connections", copiers)}
	loaded := &ingestion{bench: b, instance: s, documents: documents, vectors: true}
	if err := errors.Join(loaded.measure(ctx, &row), b.filteredFiles(ctx, loaded),
		b.gateway(ctx, loaded, provider), s.stop()); err != nil {
		return err
	}
	words := Row{What: name + ": until words find all", Unit: "s", AtMost: 50}
	indexed := Row{What: name + ": until all vectors are indexed", Unit: "s", AtMost: 180}
	words.Loci.Raw = []float64{loaded.took.words.Seconds()}
	indexed.Loci.Raw = []float64{loaded.took.indexed.Seconds()}
	for _, r := range []*Row{&row, &words, &indexed} {
		r.settle(median)
	}
	b.report.add(row, words)
	if loaded.took.indexed == 0 {
		b.report.skip(fmt.Sprintf("%d chunks are too few for an index", loaded.chunks), indexed)
		return nil
	}
	b.report.add(indexed)
	return nil
}

// filteredFiles measures searches that filters narrow to some of the files.
func (b *bench) filteredFiles(ctx context.Context, loaded *ingestion) error {
	queries, err := wordsOf(loaded.documents, b.Queries)
	if err != nil {
		return err
	}
	return b.filtered(ctx, loaded.instance, filteredSearch{
		what:    fmt.Sprintf("search of %d files, words and vectors", len(loaded.documents)),
		queries: queries,
		once: func(ctx context.Context, arguments map[string]any) error {
			_, err := loaded.instance.tool(ctx, loaded.agent, "semantic_search_files", arguments)
			return err
		},
		filters: fileFilters(),
	})
}

// wordsOf returns n queries of a few words, each from one document.
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

// smallSources writes n source files to a new directory.
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
		text = append(text, fmt.Sprintf("// %d of %d\n", i, n)...) // so that all files differ
		list[i] = Document{Path: filepath.Join(dir, fmt.Sprintf("%06d.go", i)), Bytes: int64(len(text))}
		if err := os.WriteFile(list[i].Path, text, 0o644); err != nil {
			return nil, err
		}
	}
	return list, nil
}
