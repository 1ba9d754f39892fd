package document

// odfList is the state of reading a list.
type odfList struct {
	style  string
	counts *abstractList
	level  int
}

// list reads a list. If outer is not nil, the list is within outer. Its numbers start again unless it says that it
// continues the last list.
func (o *odf) list(x *xmlReader, e element, md *markdown, outer *odfList) error {
	l := &odfList{style: e.attr("text:style-name")}
	switch {
	case outer != nil:
		l.counts, l.level = outer.counts, min(outer.level+1, maxListLevels-1)
		if levels, ok := o.lists[l.style]; !ok {
			l.style = outer.style
		} else if l.style != outer.style {
			within := *outer.counts // it has other marks than this list
			within.levels = levels.levels
			l.counts = &within
		}
	case o.last != nil && (e.attr("text:continue-numbering") == "true" || e.attr("text:continue-list") != ""):
		l.counts = o.last
	default:
		l.counts = &abstractList{}
		if levels, ok := o.lists[l.style]; ok {
			l.counts.levels = levels.levels
		}
	}
	defer func() { o.last = l.counts }() // rather than the last list within this one
	return x.each(func(e element) error {
		switch e.name {
		case "text:list-item":
			if start := number(e.attr("text:start-value"), -1); start >= 0 {
				l.counts.levels[l.level].start, l.counts.begun[l.level] = start, false
			}
			return o.item(x, md, l, false)
		case "text:list-header":
			return o.item(x, md, l, true)
		}
		return nil
	})
}

// item reads an item. Its first paragraph gets the mark, unless marked says that the item has one already. Further
// paragraphs are below it.
func (o *odf) item(x *xmlReader, md *markdown, l *odfList, marked bool) error {
	return x.each(func(e element) error {
		switch e.name {
		case "text:p":
			return o.paragraph(x, e, md, func(md *markdown, s blockStyle, text *inline) {
				if text.isEmpty() || s.hidden {
					return
				}
				b := block{within: marked, code: marked && s.code, item: true, level: l.level}
				if !marked {
					marked = true
					l.counts.count(l.level)
					b.label = l.counts.label(l.level)
				}
				md.put(b, text)
			})
		case "text:list":
			return o.list(x, e, md, l)
		}
		return o.block(x, e, md)
	})
}
