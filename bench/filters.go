package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
)

// filter narrows a search to a share of the data, by arguments of the tool.
type filter struct {
	name      string
	arguments map[string]any
	atMost    float64 // the target, in times of the search of all; 0 is 1
}

// passageTags is the number of different tags, and of different days, that passages have in rotation.
const passageTags = 100

// day returns day n of the passages, in the format of a request.
func day(n int) string { return fmt.Sprintf("2025-%02d-%02d", 1+n/25, 1+n%25) }

func fileFilters() []filter {
	return []filter{
		{"one file in a hundred", map[string]any{"include": "*07.go"}, 0},
		{"one file in ten", map[string]any{"include": "*7.go"}, 0},
		{"one file", map[string]any{"include": "000007.go"}, 0},
	}
}

func passageFilters() []filter {
	return []filter{
		{"one tag of a hundred", map[string]any{"tags": []string{"tag 7"}}, 0},
		{"ten tags of a hundred", map[string]any{"tags": tags(10)}, 0},
		{"one day of a hundred", map[string]any{"start_datetime": day(7), "end_datetime": day(7)}, 0},
		{"ten days of a hundred", map[string]any{"start_datetime": day(7), "end_datetime": day(16)}, 0},
		metadata("one value of a hundred", map[string]any{"metadata.number": 7}),
		metadata("one value of two", map[string]any{"metadata.half": "one"}),
		metadata("a hundredth of the numbers", map[string]any{"metadata.number": map[string]any{"gte": 99}}),
		metadata("half of the numbers", map[string]any{"metadata.number": map[string]any{"lt": 50}}),
		metadata("all but one value", map[string]any{"not": map[string]any{"metadata.number": 7}}),
	}
}

// metadata is a filter by metadata, which has a target of its own.
func metadata(name string, condition map[string]any) filter {
	return filter{name, map[string]any{"filter": condition}, 1.2}
}

// described is the metadata of passage n.
func described(n int) map[string]any {
	return map[string]any{"number": n % passageTags, "half": []string{"one", "other"}[n%2]}
}

func tags(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("tag ", i))
	}
	return list
}

// filteredSearch is a search that filters narrow.
type filteredSearch struct {
	what    string
	queries []string
	once    func(ctx context.Context, arguments map[string]any) error
	filters []filter
}

// filtered measures searches with filters, compared with the same searches without, in turns.
func (b *bench) filtered(ctx context.Context, s *instance, search filteredSearch) error {
	withArguments := func(filterArguments map[string]any) searched {
		return searched{queries: search.queries, once: func(ctx context.Context, _ *instance, query string) error {
			arguments := maps.Clone(filterArguments)
			if arguments == nil {
				arguments = map[string]any{}
			}
			arguments["query"] = query
			return search.once(ctx, arguments)
		}}
	}
	for _, f := range search.filters {
		row := Row{What: search.what + " of " + f.name + ": p50 of 1 client", Unit: "ms", AtMost: cmp.Or(f.atMost, 1),
			Versus: "of all"}
		for range b.Rounds {
			var p50 [2]float64
			for i, arguments := range []map[string]any{f.arguments, nil} {
				latency, err := searchFor(ctx, s, withArguments(arguments), 1, b.SearchFor)
				if err != nil {
					return err
				}
				p50[i] = latency.p50() * 1e3
			}
			row.measured(p50[0], p50[1])
		}
		row.settle(median)
		say("%s: %.2f ms; of all %.2f ms", row.What, row.Loci.Value, row.Against.Value)
		b.report.add(row)
	}
	return nil
}
