"""The words of pseudonyms: common English adjectives and nouns that say nothing about a person.

No names of people, no classes that labels often have (such as "good" or "clear"), nothing that praises or accuses a
worker, no age, origin or colour of skin. Every list is sorted, and no word is in both. A change of a list changes all
pseudonyms, so that reports from before and after it cannot be compared.
"""

from __future__ import annotations

_ADJECTIVES = """
agile airy alpine ample annual aquatic arched arctic artful atomic autumnal balanced bamboo beaded blended blue bold
bordered botanic bouncing braided brass breezy bright brimming bubbly budding buttoned calm canvas carved celestial
central ceramic charted checked cheerful chilly chrome circular citrus classic cloudy coastal cobalt coiled cool
copper cordial cosmic cotton cozy crafted creamy crescent crimson crisp cubic curved custom damp deep dewy diagonal
digital dotted downy dry durable earthen elastic electric emerald enamel engraved evergreen feathered festive fine
fleecy flint floating floral flowing fluent fluffy flying focal foggy folded forward fragrant fresh friendly frosted
frosty fuzzy gentle gilded glad glassy gleaming glossy glowing golden grainy grand granite graphic grassy gray green
grounded handy hexagonal hilly hollow humming icy indigo indoor inland inner instant intact inviting ionic iron joyful
knitted lacquered lasting latent lateral lavender layered leafy lilac linear linen liquid lively local lofty lucid
lunar lustrous magenta magnetic major marble marine maroon mauve melodic metallic metric mild mineral mint misted
mobile modest modular mossy moving musical muted natural nautical navy neat nimble novel oaken oblong oceanic open
optical orange orbital organic ornate outdoor outer oval paper pastel patched peaceful pearly pebbled pink placid
planar pleated plum plush poetic polar polished portable potted prismatic pure purple quilted radial radiant rainy
resonant restful rhythmic ribbed ringed rippling roaming robust rolling roomy rosy round roving rubber rugged rural
rustic salted sapphire satin scenic seaside seasonal serene shaded shaped sheer shining shiny silent silken silver
sleek smooth snowy soaring social soft solar solid sonic spacious sparkling spherical spicy spiral spotted sprightly
square starlit starry stately steel stellar stone streaming striped sturdy sunlit supple swirling symmetric teal tidal
tidy tranquil tropical tuneful turning turquoise twilight twin twisted upbeat upright urban varied vast velvet verdant
vertical vibrant vintage vivid vocal walnut warm watery wavy waxed whirling wide windy winged wooden woolen woven
zesty zonal
"""
_NOUNS = """
abacus acorn airport alcove almond alphabet anchor antenna anvil apple apricot aquarium arbor arcade arch armchair
arrow atlas atoll attic avenue awning axis axle badge bagel bakery balcony ballad balloon banana banjo banner barley
barn barrel basin basket battery bay bayou beach beacon bead beam bean bedrock beehive beet bell belt bench berry
bicycle birch biscuit blanket blossom blueprint board boat bobbin bonfire bonnet bonsai book boot boulder bowl bracket
branch bread breeze brick bridge broom brush bucket buckle bugle bulb buoy burrow butter button cabin cabinet cable
cactus calendar camera campfire canal candle canoe canopy canyon cape caravan cargo carpet carrot cart cascade cashew
cedar cello cement chain chair chalk chestnut chimney chisel chord cider cinema cinnamon circle clarinet clasp clock
cloth cloud coast coconut collar comet compass cone copse cord cork corner cottage counter courtyard cove crate crater
creek crocus cube cup curtain cushion cymbal cypress dairy dandelion deck delta depot desert desk dial diary dock dome
door drawer drum dune easel eclipse elm embankment ember engine envelope equator estuary fabric falls fan farm feather
fence ferry festival fiddle field fjord flag flagstone flame flask fleet flour flower flute foam foothill footpath
fork fossil fountain frame fridge fruit funnel furrow galaxy gallery garage garland garlic gate gazebo geyser girder
glacier glade glider globe glove goblet gong granary grape gravel grove guitar gulf gully hammer hammock handle harbor
harness harp hat haven hearth hedge helmet hemlock highland hillside hinge hive hook horizon horn hose hub hull hut
iceberg icicle inlet island isthmus jacket jar jetty jigsaw journal juice jungle kayak kernel kettle keyboard kiln
kite knapsack knob knot laboratory lace ladder lagoon lamp landing lane lantern larch latch lattice lawn leaf ledge
lemon lens letter lever library lighthouse lime lobby locket locomotive log loom lotus lumber lute magnet mailbox
mandolin mango mantel map market marsh mast maze meander melon mesa meteor metro mill millstone mirror mitten moat
monsoon moon moorland mosaic mountain mug museum mushroom napkin nebula necklace needle nest net notebook nozzle
nutmeg oak oar oasis oat oboe ocean octave onion orbit orchard orchid organ outpost oven paddle paint palette palm
pamphlet panel pantry papaya parade parasol parcel park parsley pasture path pavilion peach peak peanut pear pebble
pedal pen pencil peninsula pepper petal piano pier pillar pillow pine pinecone pipe pitcher planet plank plant plate
plateau platform plaza pocket pod polygon pond poplar porch port portrait pottery prairie prism propeller puddle
pulley pump pumpkin puzzle pyramid quartz quay quill quilt quince racket radar radio radish raft railway rainbow
raisin rake ramp ravine reef relay reservoir rhubarb ribbon ridge ring ripple roof rope rosette route rowboat rudder
rug runway saddle sail salad salt sandal saucer sauna scarf schooner scooter screen scroll sculpture seashell season
seat sedge seed seesaw sextant shade shed shelf shell shelter shield ship shoe shore shovel shrub shutter shuttle
signal silo sketch sled sleeve slipper slope snow snowflake soap sock socket sofa soil sonata soup spade spark
spectrum sphere spinach spindle spire spoon spout sprout spruce stadium stairway stamp star station steam stem stool
storm stove strait straw stream street studio submarine suitcase summit sundial sunflower sunrise sunset surf swamp
sweater swing switch sycamore symphony tablet tambourine tangerine tape tapestry tea telescope tent terrace theater
thicket thimble thistle threshold thunder tide tile timber timetable toast toolbox tower town track tractor trail
train tram tray treetop trellis triangle tripod trolley trombone trowel truck trumpet tuba tulip tundra tunnel turbine
turnip turret twig typewriter umbrella universe valley valve van vase vault veranda vessel vest viaduct village
vineyard violin volcano voyage wagon walkway wall wallet wardrobe warehouse watch water waterfall wave wetland wharf
wheat wheel whistle wick windmill window wing wire woodland wool workshop wreath yacht yard yarn zeppelin zipper
"""
ADJECTIVES, NOUNS = tuple(_ADJECTIVES.split()), tuple(_NOUNS.split())
