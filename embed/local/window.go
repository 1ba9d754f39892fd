package local

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// windowPieces is how many pieces one pass takes of a text, beside the two that begin and end it.
const windowPieces = positions - 2

// window is a part of a text that goes through the model at once.
type window struct {
	text int
	ids  []int32
}

func (e *Encoder) embed(ctx context.Context, texts []string) ([][]float32, error) {
	batches := e.batches(texts)
	pooled := make([][][]float32, len(batches))
	var next atomic.Int64
	run := func() {
		p := e.newPass()
		defer e.workspaces.Put(p.workspace)
		for i := next.Add(1) - 1; i < int64(len(batches)) && ctx.Err() == nil; i = next.Add(1) - 1 {
			pooled[i] = p.run(batches[i])
		}
	}
	var group sync.WaitGroup
	for range min(e.threads, len(batches)) - 1 {
		group.Go(run)
	}
	run() // on the caller's thread
	group.Wait()
	if err := ctx.Err(); err != nil {
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

func (e *Encoder) newPass() *pass {
	w, ok := e.workspaces.Get().(*workspace)
	if !ok {
		w = newWorkspace(e.kernel)
	}
	return &pass{model: e.model, kernel: e.kernel, workspace: w}
}

// batches cuts texts into windows, and puts windows together that fit into one pass.
func (e *Encoder) batches(texts []string) [][]window {
	var batches [][]window
	var batch []window
	tokens := 0
	for i, s := range texts {
		text := e.pieces.cut(s)
		if !text.suits() {
			continue
		}
		for _, ids := range e.windows(text.pieces) {
			if tokens+len(ids) > batchTokens {
				batches, batch, tokens = append(batches, batch), nil, 0
			}
			batch, tokens = append(batch, window{i, ids}), tokens+len(ids)
		}
	}
	if len(batch) > 0 {
		batches = append(batches, batch)
	}
	return batches
}

// windows returns pieces in windows of nearly the same length.
func (e *Encoder) windows(pieces []int32) [][]int32 {
	count := (len(pieces) + windowPieces - 1) / windowPieces
	windows := make([][]int32, count)
	for i := range windows {
		from, to := i*len(pieces)/count, (i+1)*len(pieces)/count
		w := append(make([]int32, 0, to-from+2), e.pieces.begin)
		windows[i] = append(append(w, pieces[from:to]...), e.pieces.end)
	}
	return windows
}

// run returns the pooled vector of each window, of norm 1.
func (p *pass) run(batch []window) [][]float32 {
	texts := make([][]int32, len(batch))
	for i, w := range batch {
		texts[i] = w.ids
	}
	p.forward(texts)
	pooled := make([][]float32, len(batch))
	at := 0
	for i, w := range batch {
		for range w.ids {
			pooled[i] = plus(pooled[i], p.hidden[at*hidden:][:hidden])
			at++
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

// Suits reports whether the model can tell what a text means: most of its letters are Latin, and its words do not fall
// apart into single letters. A text without letters does not suit.
func (e *Encoder) Suits(text string) bool { return e.pieces.cut(text).suits() }
