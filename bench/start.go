package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// starts measures the first start, which creates the cluster, and the next one.
func (b *bench) starts(ctx context.Context) error {
	first := Row{What: "first start, with initdb, until ready", Unit: "s", AtMost: 5}
	restart := Row{What: "restart until ready", Unit: "s", AtMost: 1.5}
	for range b.Starts {
		home := filepath.Join(b.work, "home")
		for _, row := range []*Row{&first, &restart} {
			s, duration, err := b.serve(ctx, home)
			if err == nil {
				err = s.stop()
			}
			if err != nil {
				return errors.Join(err, os.RemoveAll(home))
			}
			row.Loci.Raw = append(row.Loci.Raw, duration.Seconds())
		}
		if err := os.RemoveAll(home); err != nil {
			return err
		}
	}
	for _, row := range []*Row{&first, &restart} {
		row.settle(median)
		row.Note = fmt.Sprintf("median of %d", b.Starts)
	}
	say("start: first %.2f s, then %.2f s", first.Loci.Value, restart.Loci.Value)
	b.report.add(first, restart)
	return nil
}
