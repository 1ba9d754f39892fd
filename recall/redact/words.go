package redact

import (
	"slices"
	"strings"
)

// words finds many words in one pass over a text, in whatever case: it is the automaton of Aho and Corasick, all of its moves in a table.
type words struct {
	class [256]int // of a byte, upper and lower case in one; 0 is of none of the words
	width int      // classes
	next  []uint32 // by state times width plus class: the next state, times width
	found [][]int  // by state less those that end no word: the words that end here, longest first
	from  int      // states from here on, times width, end words
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// newWords makes the automaton of words; their bytes are folded to lower case.
func newWords(list []string) *words {
	w := &words{width: 1}
	for _, word := range list {
		for _, c := range []byte(strings.ToLower(word)) {
			if w.class[c] == 0 {
				w.class[c] = w.width
				w.width++
			}
		}
	}
	for c := range w.class {
		w.class[c] = w.class[lower(byte(c))]
	}
	moves, ends := w.trie(list)
	w.close(moves, ends)
	return w
}

// trie has a state for each beginning of a word; ends are the words that end in a state.
func (w *words) trie(list []string) (moves [][]int, ends [][]int) {
	add := func() int {
		moves = append(moves, make([]int, w.width))
		ends = append(ends, nil)
		return len(moves) - 1
	}
	add()
	for i, word := range list {
		at := 0
		for _, c := range []byte(word) {
			k := w.class[c]
			if moves[at][k] == 0 {
				moves[at][k] = add() // add may move moves
			}
			at = moves[at][k]
		}
		ends[at] = append(ends[at], i)
	}
	return moves, ends
}

// close gives every state a move for every class: where no word goes on, the longest ending that begins one does.
func (w *words) close(moves [][]int, ends [][]int) {
	back := make([]int, len(moves))
	queue := []int{0}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for k, to := range moves[at] {
			if to == 0 {
				moves[at][k] = moves[back[at]][k]
				continue
			}
			if at != 0 {
				back[to] = moves[back[at]][k]
			}
			ends[to] = append(ends[to], ends[back[to]]...)
			queue = append(queue, to)
		}
	}
	w.number(moves, ends)
}

// number makes the table, the states that end words last.
func (w *words) number(moves [][]int, ends [][]int) {
	order := make([]int, len(moves))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order[1:], func(a, b int) int { return min(len(ends[a]), 1) - min(len(ends[b]), 1) })
	number := make([]int, len(moves))
	for n, at := range order {
		number[at] = n * w.width
	}
	w.from = len(moves) * w.width
	w.next = make([]uint32, 0, len(moves)*w.width)
	for n, at := range order {
		if len(ends[at]) > 0 {
			w.from = min(w.from, n*w.width)
			w.found = append(w.found, ends[at])
		}
		for _, to := range moves[at] {
			w.next = append(w.next, uint32(number[to])) //nolint:gosec // a table of 4 GB is too large anyway
		}
	}
}

// each calls hit for each place where words end, with the words, until it returns false.
func (w *words) each(text string, hit func(end int, words []int) bool) {
	state, from, next, class := 0, w.from, w.next, &w.class
	for i := range len(text) {
		state = int(next[state+class[text[i]]])
		if state >= from && !hit(i+1, w.found[(state-from)/w.width]) {
			return
		}
	}
}

// in tells whether a text has one of the words.
func (w *words) in(text string) (has bool) {
	w.each(text, func(int, []int) bool { has = true; return false })
	return has
}
