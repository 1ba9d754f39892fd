package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// bulk watches the server's memory during a large load, and then searches and opens what was loaded.
func (b *bench) bulk(ctx context.Context) error {
	load, err := b.newLoad()
	if err != nil {
		return err
	}
	load.home = filepath.Join(b.work, "home")
	s, _, err := b.serve(ctx, load.home)
	if err != nil {
		return err
	}
	restart := func() (*instance, error) {
		if err := s.stop(); err != nil {
			return s, err
		}
		next, _, err := b.serve(ctx, load.home)
		if err == nil {
			s = next
		}
		return s, err
	}
	err = load.watch(ctx, s)
	if err == nil {
		err = load.growth(ctx, s)
	}
	if err == nil {
		s, err = b.grep(ctx, s, load.grepAgent, filepath.Join(b.work, "searched"), restart)
	}
	if err == nil {
		err = b.open(ctx, s, load)
	}
	return errors.Join(err, s.stop(), os.RemoveAll(load.home), os.RemoveAll(filepath.Join(b.work, "searched")),
		os.RemoveAll(filepath.Join(b.work, "large")), os.RemoveAll(filepath.Join(b.work, "few")))
}

// watch uploads everything, and reports the server's memory before, during and after that.
func (l *load) watch(ctx context.Context, s *instance) error {
	idle := Row{What: "resident memory, idle after the start", Unit: "MB", AtMost: 60}
	peak := Row{What: fmt.Sprintf("resident memory, peak while %d MiB go in", l.BulkBytes/mebibyte), Unit: "MB",
		AtMost: 400}
	idleAfter := Row{What: "resident memory, idle afterwards", Unit: "MB", AtMost: 60}
	if err := pause(ctx, l.Settle); err != nil {
		return err
	}
	memoryBefore, known := s.resident()
	duration, err := l.ingest(ctx, s)
	if err != nil {
		return err
	}
	memoryDuring, _ := s.resident()
	if err := pause(ctx, 3*l.Settle); err != nil {
		return err
	}
	memoryAfter, _ := s.resident()
	if !known {
		l.report.skip("this system has no /proc", idle, peak, idleAfter)
		return nil
	}
	say("memory: %.0f MB idle, %.0f MB at most, %.0f MB afterwards; %.0f s", memoryBefore.now/1e6, memoryDuring.peak/1e6,
		memoryAfter.now/1e6, duration.Seconds())
	idle.Note = memoryBefore.ofProgram()
	peak.Note = fmt.Sprintf("%.0f s, %s", duration.Seconds(), memoryDuring.ofProgram())
	idleAfter.Note = fmt.Sprintf("%s later, %s", 3*l.Settle, memoryAfter.ofProgram())
	for row, bytes := range map[*Row]float64{&idle: memoryBefore.now, &peak: memoryDuring.peak,
		&idleAfter: memoryAfter.now} {
		row.Loci.Raw = []float64{bytes / 1e6}
		row.settle(median)
	}
	l.report.add(idle, peak, idleAfter)
	return nil
}

// open measures opening 100 lines in the middle of a large file, compared with a small file.
func (b *bench) open(ctx context.Context, s *instance, l *load) error {
	row := Row{What: fmt.Sprintf("open_files, 100 lines amid %.3g MiB, p50", float64(b.LargeBytes)/mebibyte), Unit: "ms",
		AtMost: 1.5,
		Versus: fmt.Sprintf("amid %d KiB", b.SmallBytes>>10)}
	sides := []Document{l.large[0], l.large[len(l.large)-1]}
	middles := make([]int, len(sides))
	for i, d := range sides {
		text, err := os.ReadFile(d.Path)
		if err != nil {
			return err
		}
		lines := 0
		for _, c := range text {
			if c == '\n' {
				lines++
			}
		}
		middles[i] = max(lines/2-50, 0)
	}
	var times [2][]float64
	for range b.Opens {
		for i, d := range sides {
			start := time.Now()
			if _, err := s.tool(ctx, l.openAgent, "open_files", map[string]any{"include_content": true,
				"file_requests": []map[string]any{
					{"file_name": "large/" + filepath.Base(d.Path), "offset": middles[i], "length": 100}}}); err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(start).Seconds()*1e3)
		}
	}
	row.Loci.Raw, row.Against.Raw = times[0], times[1]
	row.settle(median)
	row.thin()
	b.report.add(row)
	return nil
}
