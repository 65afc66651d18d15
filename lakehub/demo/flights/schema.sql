-- The operational database of the story: what an airline's own system might look like.
CREATE TABLE airlines (
    carrier VARCHAR(2) NOT NULL PRIMARY KEY,
    name VARCHAR(100) NOT NULL,
    updated_at DATETIME NOT NULL
);
CREATE TABLE airports (
    faa VARCHAR(4) NOT NULL PRIMARY KEY,
    name VARCHAR(100) NOT NULL,
    lat FLOAT NOT NULL,
    lon FLOAT NOT NULL,
    alt INTEGER NOT NULL,
    tz INTEGER NOT NULL,
    dst VARCHAR(1),
    tzone VARCHAR(40),
    updated_at DATETIME NOT NULL
);
CREATE TABLE planes (
    tailnum VARCHAR(10) NOT NULL PRIMARY KEY,
    year INTEGER,
    type VARCHAR(40) NOT NULL,
    manufacturer VARCHAR(40) NOT NULL,
    model VARCHAR(40) NOT NULL,
    engines INTEGER NOT NULL,
    seats INTEGER NOT NULL,
    speed INTEGER,
    engine VARCHAR(20) NOT NULL,
    updated_at DATETIME NOT NULL
);
CREATE TABLE weather (
    id INTEGER NOT NULL PRIMARY KEY,
    origin VARCHAR(3) NOT NULL,
    year INTEGER NOT NULL,
    month INTEGER NOT NULL,
    day INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    temp FLOAT,
    dewp FLOAT,
    humid FLOAT,
    wind_dir INTEGER,
    wind_speed FLOAT,
    wind_gust FLOAT,
    precip FLOAT,
    pressure FLOAT,
    visib FLOAT,
    time_hour DATETIME NOT NULL,
    recorded_at DATETIME NOT NULL
);
CREATE TABLE flights (
    carrier VARCHAR(2) NOT NULL,
    flight INTEGER NOT NULL,
    origin VARCHAR(3) NOT NULL,
    flight_date VARCHAR(10) NOT NULL,
    year INTEGER NOT NULL,
    month INTEGER NOT NULL,
    day INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    sched_dep_time INTEGER NOT NULL,
    dep_time INTEGER,
    dep_delay INTEGER,
    sched_arr_time INTEGER NOT NULL,
    arr_time INTEGER,
    arr_delay INTEGER,
    tailnum VARCHAR(10),
    dest VARCHAR(4) NOT NULL,
    air_time INTEGER,
    distance INTEGER NOT NULL,
    time_hour DATETIME NOT NULL,
    status VARCHAR(10) NOT NULL,
    updated_at DATETIME NOT NULL,
    PRIMARY KEY (carrier, flight, origin, flight_date)
);
CREATE INDEX flights_updated ON flights (updated_at);
