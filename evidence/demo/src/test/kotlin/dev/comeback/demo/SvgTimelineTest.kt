package dev.comeback.demo

import org.junit.jupiter.api.Test
import org.w3c.dom.Document
import org.w3c.dom.Element
import javax.xml.parsers.DocumentBuilderFactory
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** The picture is well-formed, self-contained, and always the same for the same ride. */
class SvgTimelineTest {
    private val svg = svgTimeline(Example.run)
    private val document: Document = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(svg.byteInputStream())

    @Test
    fun `the same ride gives the same bytes`() {
        assertEquals(svg, svgTimeline(Example.run))
    }

    @Test
    fun `it is well-formed and sized`() {
        val root = document.documentElement
        assertEquals("svg", root.tagName)
        assertEquals("0 0 ${root.getAttribute("width")} ${root.getAttribute("height")}", root.getAttribute("viewBox"))
    }

    @Test
    fun `it has no scripts and refers to nothing outside`() {
        assertEquals(emptyList(), elements("script") + elements("image") + elements("use") + elements("style"))
        assertEquals(listOf("http://www.w3.org/2000/svg"), Regex("https?://[^\"]*").findAll(svg).map { it.value }.toList())
    }

    @Test
    fun `each client has a lane with its name, set-up and figures, and both lanes show the outage`() {
        val texts = elements("text").map { it.textContent }
        for (text in listOf("hand-written", "usual <retry>", "comeback", "with keys & signal")) assertTrue(text in texts, text)
        assertTrue(texts.any { it.startsWith("2 of 3 served  ·  1 gave up  ·  1 duplicate order  ·") }, "$texts")
        val bands = elements("rect").filter { it.getAttribute("fill") == "#d3d6dc" }
        assertEquals(1 + 2 * Example.run.ride.outages.size, bands.size) // one in the legend
        assertEquals(
            1,
            bands
                .drop(1)
                .map { it.getAttribute("x") to it.getAttribute("width") }
                .distinct()
                .size,
        )
    }

    @Test
    fun `nothing is drawn outside of the picture`() {
        val width = document.documentElement.getAttribute("width").toDouble()
        val places =
            (
                elements(
                    "rect",
                ).map { it.getAttribute("x") } + elements("circle").map { it.getAttribute("cx") }
            ).map { it.toDouble() }
        assertTrue(places.all { it in 0.0..width }, "$places")
    }

    private fun elements(name: String): List<Element> {
        val nodes = document.getElementsByTagName(name)
        return List(nodes.length) { nodes.item(it) as Element }
    }
}
