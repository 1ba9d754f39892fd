package main

import (
	"fmt"
	"html"
	"strings"
)

// panel is a drawing of how full a window was after each turn.
type panel struct {
	title         string
	window        int     // tokens
	trigger, goal float64 // shares of the window
	usage         []int   // tokens after each turn
	compacted     []int   // turns with a compaction, from 1
}

// The measures of a panel, in pixels.
const (
	panelWidth, panelHeight = 960, 300
	left, right, top, below = 64, 24, 40, 48
)

// plot draws panels below each other, as SVG.
func plot(panels []panel) []byte {
	var b strings.Builder
	height := panelHeight * max(len(panels), 1)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="12">`+"\n",
		panelWidth, height, panelWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", panelWidth, height)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", i*panelHeight)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func (p panel) draw(b *strings.Builder) {
	fmt.Fprintf(b, `<text x="%d" y="22" font-size="14" fill="#222">%s</text>`+"\n", left, html.EscapeString(p.title))
	for _, turn := range p.compacted {
		fmt.Fprintf(b, `<path d="M%.1f %dv6" stroke="#d55e00"/>`+"\n", p.x(turn), panelHeight-below)
	}
	for _, line := range []struct {
		share        float64
		name, colour string
		dashes       string
	}{{1, "window", "#222", "none"}, {p.trigger, "trigger", "#d55e00", "6 3"}, {p.goal, "goal", "#009e73", "2 3"}} {
		y := p.y(line.share * float64(p.window))
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="%s" stroke-dasharray="%s"/>`+"\n", left, y, panelWidth-right,
			line.colour, line.dashes)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end" fill="%s">%s, %.0f %%</text>`+"\n", panelWidth-right-4, y-3,
			line.colour, line.name, 100*line.share)
	}
	fmt.Fprintf(b, `<path d="M%d %dV%dH%d" fill="none" stroke="#222"/>`+"\n", left, top, panelHeight-below,
		panelWidth-right)
	for i := range 5 {
		tokens := p.window * i / 4
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end" fill="#222">%d</text>`+"\n", left-6, p.y(float64(tokens))+4,
			tokens)
	}
	for i := range 6 {
		turn := max(len(p.usage)*i/5, 1)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#222">%d</text>`+"\n", p.x(turn),
			panelHeight-below+20, turn)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="#222">turn; each mark on the axis is a compaction. `+
		`Drawn: tokens of the turn's last prompt, as its provider counted them</text>`+"\n",
		(left+panelWidth-right)/2, panelHeight-below+38)
	b.WriteString(`<path fill="none" stroke="#0072b2" d="`)
	for i, tokens := range p.usage {
		fmt.Fprintf(b, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], p.x(i+1), p.y(float64(tokens)))
	}
	b.WriteString(`"/>` + "\n")
}

// x returns the horizontal position of a turn; y returns the vertical position of a number of tokens.
func (p panel) x(turn int) float64 {
	return left + float64(turn-1)/float64(max(len(p.usage)-1, 1))*(panelWidth-left-right)
}

func (p panel) y(tokens float64) float64 {
	return panelHeight - below - tokens/float64(p.window)*(panelHeight-top-below)
}
