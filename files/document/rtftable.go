package document

func (t *rtfText) endCell() {
	t.state.inTable = true
	t.endParagraph()
	s := t.sink()
	s.row.add(t.budget, s.cell.text(), 1)
	s.cell = newFlat(t.budget)
}

func (t *rtfText) endRow() {
	s := t.sink()
	if t.budget.handle(16 + 8*len(t.edges)) {
		s.rows, s.edges = append(s.rows, s.row), append(s.edges, t.edges)
	}
	s.row = row{}
}

func (t *rtfText) endTable() {
	s := t.sink()
	if text := s.cell.text(); text != "" { // without the end of its cell
		s.cell = newFlat(t.budget)
		s.md.paragraph(text)
	}
	t.spread(s)
	s.md.table(s.rows)
	s.rows, s.edges = nil, nil
}

// spread puts the cells that are merged with others of their row into the columns that they begin in: those of the row with most cells,
// if the edges of its cells are among that row's.
func (t *rtfText) spread(s *rtfSink) {
	columns := map[int]int{}
	for _, edges := range s.edges {
		if len(edges) > len(columns) {
			clear(columns)
			for i, edge := range edges {
				columns[edge] = i
			}
		}
	}
	for i, edges := range s.edges {
		if cells := s.rows[i].cells; len(edges) == len(cells) && len(cells) < len(columns) {
			spread, next := row{breaks: s.rows[i].breaks}, 0
			for j, edge := range edges {
				last, known := columns[edge]
				if !known || last < next {
					spread.cells = cells
					break
				}
				spread.add(t.budget, cells[j], 1)
				spread.add(t.budget, "", last-next)
				next = last + 1
			}
			s.rows[i] = spread
		}
	}
}
