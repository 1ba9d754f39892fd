package local

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// window is a part of a text that is computed at once.
type window struct {
	text   int
	ids    []int32
	second int // start of the second of two texts; 0 if there is only one
}

// embed returns the vectors of texts, each with the encoder's prompt before it.
func (e *Encoder) embed(ctx context.Context, texts []string) ([][]float32, error) {
	if e.table != nil {
		return e.lookUp(ctx, texts)
	}
	batches := e.batches(texts)
	pooled := make([][][]float32, len(batches))
	if err := e.run(ctx, batches, func(i int, p *pass) { pooled[i] = p.pooled(batches[i], e.pooling) }); err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(texts))
	for i, batch := range batches {
		for j, w := range batch {
			vectors[w.text] = plus(vectors[w.text], pooled[i][j])
		}
	}
	for _, v := range vectors {
		unit(v)
	}
	return vectors, nil
}

// run computes batches on the encoder's threads, and calls done for each as soon as its values are ready.
func (e *Encoder) run(ctx context.Context, batches [][]window, done func(i int, p *pass)) error {
	var next atomic.Int64
	work := func() {
		p := e.newPass()
		defer e.workspaces.Put(p.workspace)
		for i := next.Add(1) - 1; i < int64(len(batches)) && ctx.Err() == nil; i = next.Add(1) - 1 {
			p.forward(batches[i])
			done(int(i), p)
		}
	}
	var group sync.WaitGroup
	for range min(e.threads, len(batches)) - 1 {
		group.Go(work)
	}
	work() // on the caller's thread
	group.Wait()
	return ctx.Err()
}

func (e *Encoder) newPass() *pass {
	w, ok := e.workspaces.Get().(*workspace)
	if !ok {
		w = newWorkspace(e.shape, e.kernel)
	}
	return &pass{transformer: e.transformer, kernel: e.kernel, workspace: w}
}

// batches cuts texts into windows, and groups them into passes.
func (e *Encoder) batches(texts []string) [][]window {
	var all []window
	for i, s := range texts {
		text := e.cut(s)
		if e.unsuited(text) != "" {
			continue
		}
		for _, ids := range e.windows(text.pieces) {
			all = append(all, window{text: i, ids: ids})
		}
	}
	return batched(all, e.batchTokens())
}

// batched groups windows into batches of at most most tokens.
func batched(windows []window, most int) [][]window {
	var batches [][]window
	first, tokens := 0, 0
	for i, w := range windows {
		if tokens+len(w.ids) > most {
			batches, first, tokens = append(batches, windows[first:i]), i, 0
		}
		tokens += len(w.ids)
	}
	if first < len(windows) {
		batches = append(batches, windows[first:])
	}
	return batches
}

// windows returns pieces in windows of nearly the same length, each with the prompt before it.
func (e *Encoder) windows(pieces []int32) [][]int32 {
	prompt := slices.Concat(e.begin, e.prompt.pieces)
	most := e.window - len(prompt) - len(e.end)
	count := (len(pieces) + most - 1) / most
	windows := make([][]int32, count)
	for i := range windows {
		from, to := i*len(pieces)/count, (i+1)*len(pieces)/count
		windows[i] = slices.Concat(prompt, pieces[from:to], e.end)
	}
	return windows
}

// pooling is how the vectors of a window's tokens become one.
type pooling int

const (
	mean       pooling = iota
	firstToken         // the vector of the token before the text
)

// pooled returns the vector of each window of the last pass, of norm 1.
func (p *pass) pooled(batch []window, method pooling) [][]float32 {
	pooled := make([][]float32, len(batch))
	row := 0
	for i, w := range batch {
		for token := range w.ids {
			if method == mean || token == 0 {
				pooled[i] = plus(pooled[i], p.row(row)[:p.hidden])
			}
			row++
		}
		unit(pooled[i])
	}
	return pooled
}

// plus adds v to sum, which is nil at first.
func plus(sum, v []float32) []float32 {
	if sum == nil {
		sum = make([]float32, len(v))
	}
	for i, x := range v {
		sum[i] += x
	}
	return sum
}

// unit scales v to the norm 1.
func unit(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(float64(x) * float64(x))
	}
	norm := math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) / norm)
	}
}
